! Ranks from outside, in Fortran: MPI has started the processes, FMPL joins them by MPI's allgather, then by an identifier that MPI has
! passed round.
module exchanging
  implicit none
  include 'mpif.h'
contains
  subroutine exchange(mine, all, bytes, ier)
    integer(1) :: mine(*), all(*)
    integer :: bytes, ier
    call MPI_Allgather(mine, bytes, MPI_BYTE, all, bytes, MPI_BYTE, MPI_COMM_WORLD, ier)
  end subroutine exchange
end module exchanging

program outside
  use fmpl
  use exchanging
  implicit none
  integer :: rank, size, ier, mine, from
  integer(8) :: id(16)
  call MPI_Init(ier)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ier)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ier)
  call fmpl_init_with(rank, size, exchange, 4, ier)
  call round()
  if (rank == 0) call fmpl_id_create(id, ier)
  call MPI_Bcast(id, 128, MPI_BYTE, 0, MPI_COMM_WORLD, ier)
  call fmpl_init_id(id, rank, size, 4, ier)
  call round()
  call MPI_Finalize(ier)
  if (rank == 0) print '(a,i0,a)', 'fine: ', size, ' ranks'
contains
  subroutine round()
    if (ier /= FMPL_SUCCESS) stop 1
    mine = 100 + rank
    call fmpl_sendrecv(mine, 4, mod(rank + 1, size), 1, from, 4, mod(rank + size - 1, size), 1, FMPL_COMM_WORLD, ier)
    if (ier /= FMPL_SUCCESS .or. from /= 100 + mod(rank + size - 1, size)) stop 2
    call fmpl_finalize(ier)
    if (ier /= FMPL_SUCCESS) stop 3
  end subroutine round
end program outside
