! Overlap: post the receive, compute, and take the data when it is needed. The sender writes straight into the posted buffer
! while the receiver computes. Such buffers are ASYNCHRONOUS: they change while no statement of the program says so.
!
!     gfortran -O2 PREFIX/include/fmpl.f90 overlap.f90 -o overlap $(pkg-config --libs fmpl)
!     fmpl run -n 2 ./overlap
program overlap
  use fmpl
  implicit none
  integer, parameter :: n = 262144, rounds = 10
  integer :: rank, nranks, next, last, round, k, ier
  real(8), asynchronous :: outgoing(n), incoming(n)
  real(8) :: total

  call fmpl_init(FMPL_NULL, FMPL_NULL, 32, ier)
  call try(ier)
  call fmpl_comm_rank(FMPL_COMM_WORLD, rank, ier)
  call try(ier)
  call fmpl_comm_size(FMPL_COMM_WORLD, nranks, ier)
  call try(ier)
  next = mod(rank + 1, nranks)
  last = mod(rank + nranks - 1, nranks)
  total = 0
  do round = 1, rounds
    outgoing = [(rank * 1000d0 + round + k, k = 1, n)]
    ! There is no request object: peer, index and communicator name the request.
    call fmpl_irecv(incoming, 8 * n, last, 0, FMPL_COMM_WORLD, ier)
    call try(ier)
    call fmpl_isend(outgoing, 8 * n, next, 0, FMPL_COMM_WORLD, ier)
    call try(ier)
    total = total + work(round)
    call fmpl_irecv_wait(last, 0, FMPL_COMM_WORLD, ier)
    call try(ier)
    do k = 1, n
      call expect(nint(incoming(k)) == last * 1000 + round + k, 'what arrived')
    end do
    call fmpl_isend_wait(next, 0, FMPL_COMM_WORLD, ier)
    call try(ier)
  end do
  call expect(total > 0, 'what was computed')
  call fmpl_barrier(FMPL_COMM_WORLD, ier)
  call try(ier)
  if (rank == 0) print '(i0,a,i0,a,i0,a)', rounds * nranks, ' messages of ', 8 * n, ' bytes moved while ', nranks, ' ranks computed'
  call fmpl_finalize(ier)
  call try(ier)

contains

  include 'example.inc'

  ! Some work that needs nothing from the others.
  real(8) function work(round)
    integer, intent(in) :: round
    integer :: k
    work = 0
    do k = 1, 200000
      work = work + 1d0 / (real(k, 8)**2 + rank + round)
    end do
  end function work

end program overlap
