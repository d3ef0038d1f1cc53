! Strided: rows of a matrix go from rank 0 to columns of rank 1. A row of a Fortran array is strided: it is sent as a block, without
! being packed. Then a triangle goes as a list.
!
!     gfortran PREFIX/include/fmpl.f90 strided.f90 -o strided $(pkg-config --libs fmpl)
!     fmpl run -n 2 ./strided
program strided
  use fmpl
  implicit none
  integer, parameter :: rows = 60, columns = 80, n = 20
  integer :: rank, nranks, i, j, at, ier
  real(8) :: matrix(rows, columns), packed(n * (n + 1) / 2)
  integer(8) :: displ(n), lens(n)

  call fmpl_init(FMPL_NULL, FMPL_NULL, 32, ier)
  call try(ier)
  call fmpl_comm_rank(FMPL_COMM_WORLD, rank, ier)
  call try(ier)
  call fmpl_comm_size(FMPL_COMM_WORLD, nranks, ier)
  call try(ier)
  call expect(nranks >= 2, 'needs two ranks')
  do j = 1, columns
    do i = 1, rows
      matrix(i, j) = merge(1000 * i + j, -1, rank == 0)
    end do
  end do

  ! Rows 11 to 20 of columns 6 to 25: 20 runs of 10 numbers, a column of the matrix apart. They land elsewhere in a matrix that is
  ! otherwise left alone.
  if (rank == 0) then
    call fmpl_send_block(matrix(11, 6), 80_8, 20_8, 8_8 * rows, 1, 0, FMPL_COMM_WORLD, ier)
    call try(ier)
  else if (rank == 1) then
    call fmpl_recv_block(matrix(31, 41), 80_8, 20_8, 8_8 * rows, 0, 0, FMPL_COMM_WORLD, ier)
    call try(ier)
    do j = 1, columns
      do i = 1, rows
        if (i > 30 .and. i <= 40 .and. j > 40 .and. j <= 60) then
          call expect(nint(matrix(i, j)) == 1000 * (i - 20) + j - 35, 'the block')
        else
          call expect(nint(matrix(i, j)) == -1, 'around the block')
        end if
      end do
    end do
  end if

  ! Row i of rank 0 becomes column i of rank 1: the bytes are a stream, the two sides have their own shapes.
  do i = 1, n
    if (rank == 0) call fmpl_send_block(matrix(i, 1), 8_8, 60_8, 8_8 * rows, 1, i, FMPL_COMM_WORLD, ier)
    if (rank == 1) call fmpl_recv(matrix(1, i), 480, 0, i, FMPL_COMM_WORLD, ier)
    call try(ier)
  end do
  if (rank == 1) then
    do i = 1, n
      do j = 1, 60
        call expect(nint(matrix(j, i)) == 1000 * i + j, 'the transposed rows')
      end do
    end do
  end if

  ! The upper triangle of the first n columns, into one array without gaps. Distances count from the base in bytes.
  if (rank == 0) then
    do j = 1, n
      displ(j) = 8_8 * rows * (j - 1)
      lens(j) = 8_8 * j
    end do
    call fmpl_send_list(matrix, displ, lens, n, 1, n + 1, FMPL_COMM_WORLD, ier)
    call try(ier)
  else if (rank == 1) then
    call fmpl_recv(packed, 8 * size(packed), 0, n + 1, FMPL_COMM_WORLD, ier)
    call try(ier)
    at = 0
    do j = 1, n
      do i = 1, j
        at = at + 1
        call expect(nint(packed(at)) == 1000 * i + j, 'the triangle')
      end do
    end do
    print '(a,i0,a)', 'a block, ', n, ' transposed rows and a triangle arrived'
  end if
  call fmpl_finalize(ier)
  call try(ier)

contains

  include 'example.inc'

end program strided
