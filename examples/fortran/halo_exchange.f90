! Halo exchange: Jacobi's method for the heat equation on a square, cut into as many blocks of rows as there are ranks. Each rank
! keeps a copy of its neighbours' border rows. A row of a Fortran array is strided: it is sent as a block, not packed. The result is
! compared with the same computation on one rank.
!
!     gfortran -O2 PREFIX/include/fmpl.f90 halo_exchange.f90 -o halo_exchange $(pkg-config --libs fmpl)
!     fmpl run -n 4 ./halo_exchange
program halo_exchange
  use fmpl
  implicit none
  integer, parameter :: rows = 60, columns = 48, steps = 100, upwards = 0, downwards = 1
  integer :: rank, nranks, first, height, above, below, old, new, i, j, t, ier
  integer(8) :: stride
  real(8), asynchronous :: field(0:rows + 1, columns, 0:1)
  real(8) :: whole(0:rows + 1, columns, 0:1)

  call fmpl_init(FMPL_NULL, FMPL_NULL, 32, ier)
  call try(ier)
  call fmpl_comm_rank(FMPL_COMM_WORLD, rank, ier)
  call try(ier)
  call fmpl_comm_size(FMPL_COMM_WORLD, nranks, ier)
  call try(ier)
  call expect(nranks <= rows / 2, 'too many ranks for this size')
  ! My rows are first to first + height - 1; in my array they are 1 to height, between two rows of halo.
  first = rows * rank / nranks + 1
  height = rows * (rank + 1) / nranks + 1 - first
  above = merge(rank - 1, FMPL_PROC_NULL, rank > 0)
  below = merge(rank + 1, FMPL_PROC_NULL, rank < nranks - 1)
  field = 0
  whole = 0
  do t = 0, 1
    do j = 1, columns
      do i = 1, rows
        whole(i, j, t) = given(i, j)
        if (i >= first .and. i < first + height) field(i - first + 1, j, t) = given(i, j)
      end do
    end do
  end do

  stride = 8_8 * (rows + 2)
  do t = 1, steps
    old = mod(t - 1, 2)
    new = mod(t, 2)
    ! Posted first, so that the neighbours can write straight into the halo. Towards FMPL_PROC_NULL nothing happens.
    call fmpl_irecv_block(field(0, 1, old), 8_8, int(columns, 8), stride, above, downwards, FMPL_COMM_WORLD, ier)
    call try(ier)
    call fmpl_irecv_block(field(height + 1, 1, old), 8_8, int(columns, 8), stride, below, upwards, FMPL_COMM_WORLD, ier)
    call try(ier)
    call fmpl_isend_block(field(1, 1, old), 8_8, int(columns, 8), stride, above, upwards, FMPL_COMM_WORLD, ier)
    call try(ier)
    call fmpl_isend_block(field(height, 1, old), 8_8, int(columns, 8), stride, below, downwards, FMPL_COMM_WORLD, ier)
    call try(ier)
    ! What needs no halo is computed meanwhile.
    call step(field, 2, height - 1)
    call fmpl_irecv_wait(above, downwards, FMPL_COMM_WORLD, ier)
    call try(ier)
    call fmpl_irecv_wait(below, upwards, FMPL_COMM_WORLD, ier)
    call try(ier)
    call fmpl_isend_wait(above, upwards, FMPL_COMM_WORLD, ier)
    call try(ier)
    call fmpl_isend_wait(below, downwards, FMPL_COMM_WORLD, ier)
    call try(ier)
    if (rank > 0) call step(field, 1, 1)
    if (rank < nranks - 1) call step(field, height, height)

    call step(whole, 2, rows - 1)
  end do
  do j = 1, columns
    do i = 1, height
      call expect(abs(field(i, j, mod(steps, 2)) - whole(first + i - 1, j, mod(steps, 2))) <= 0d0, 'the temperature')
    end do
  end do
  call fmpl_barrier(FMPL_COMM_WORLD, ier)
  call try(ier)
  if (rank == 0) print '(i0,a,i0,a)', steps, ' steps on ', nranks, ' ranks: the same as on one'
  call fmpl_finalize(ier)
  call try(ier)

contains

  include 'example.inc'

  ! The temperature at the beginning, and for ever at the border.
  real(8) function given(row, column)
    integer, intent(in) :: row, column
    given = 0
    if (row == rows .or. column == columns) given = 10
    if (column == 1) given = 50
    if (row == 1) given = 100
  end function given

  ! One step for the inner points of some rows.
  subroutine step(a, from, to)
    real(8), intent(inout) :: a(0:rows + 1, columns, 0:1)
    integer, intent(in) :: from, to
    integer :: i, j
    do j = 2, columns - 1
      do i = from, to
        a(i, j, new) = 0.25d0 * (a(i - 1, j, old) + a(i + 1, j, old) + a(i, j - 1, old) + a(i, j + 1, old))
      end do
    end do
  end subroutine step

end program halo_exchange
