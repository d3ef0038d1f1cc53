! Ring: every rank's number travels once round all ranks, and everyone adds them up.
!
!     gfortran PREFIX/include/fmpl.f90 ring.f90 -o ring $(pkg-config --libs fmpl)
!     fmpl run -n 4 ./ring
program ring
  use fmpl
  implicit none
  integer :: rank, nranks, next, last, step, total, travelling, arriving, ier

  call fmpl_init(FMPL_NULL, FMPL_NULL, 32, ier)
  call try(ier)
  call fmpl_comm_rank(FMPL_COMM_WORLD, rank, ier)
  call try(ier)
  call fmpl_comm_size(FMPL_COMM_WORLD, nranks, ier)
  call try(ier)
  next = mod(rank + 1, nranks)
  last = mod(rank + nranks - 1, nranks)
  travelling = rank + 1
  total = travelling
  do step = 1, nranks - 1
    ! All send and receive at the same time; nobody has to begin.
    call fmpl_sendrecv(travelling, 4, next, 0, arriving, 4, last, 0, FMPL_COMM_WORLD, ier)
    call try(ier)
    travelling = arriving
    total = total + travelling
  end do
  call expect(total == nranks * (nranks + 1) / 2, 'the sum')
  if (rank == 0) print '(a,i0,a,i0)', 'the sum of 1 to ', nranks, ' is ', total
  call fmpl_finalize(ier)
  call try(ier)

contains

  include 'example.inc'

end program ring
