! Ping-pong: ranks 0 and 1 send messages of growing length back and forth, and print what one way takes.
!
!     gfortran -O2 PREFIX/include/fmpl.f90 ping_pong.f90 -o ping_pong $(pkg-config --libs fmpl)
!     fmpl run -n 2 ./ping_pong
program ping_pong
  use fmpl
  implicit none
  integer, parameter :: largest = 131072
  integer :: rank, nranks, peer, rounds, round, length, ier
  real(8) :: ball(largest), begin, seconds

  call fmpl_init(FMPL_NULL, FMPL_NULL, 32, ier)
  call try(ier)
  call fmpl_comm_rank(FMPL_COMM_WORLD, rank, ier)
  call try(ier)
  call fmpl_comm_size(FMPL_COMM_WORLD, nranks, ier)
  call try(ier)
  call expect(nranks >= 2, 'needs two ranks')
  if (rank == 0) print '(a10,a14)', 'bytes', 'one way, us'
  peer = 1 - rank
  length = 1
  do while (length <= largest .and. rank < 2)
    rounds = merge(2000, 100, length < 1000)
    ball = 0
    begin = fmpl_wtime()
    do round = 1, rounds
      ! Each player adds one to the first and to the last number.
      if (rank == 1) then
        call fmpl_recv(ball, 8 * length, peer, 0, FMPL_COMM_WORLD, ier)
        call try(ier)
      end if
      ball(1) = ball(1) + 1
      if (length > 1) ball(length) = ball(length) + 1
      call fmpl_send(ball, 8 * length, peer, 0, FMPL_COMM_WORLD, ier)
      call try(ier)
      if (rank == 0) then
        call fmpl_recv(ball, 8 * length, peer, 0, FMPL_COMM_WORLD, ier)
        call try(ier)
      end if
    end do
    seconds = fmpl_wtime() - begin
    call expect(nint(ball(1)) == 2 * rounds .and. nint(ball(length)) == 2 * rounds, 'hits')
    call expect(all(abs(ball(2:length - 1)) < 0.5d0), 'between')
    if (rank == 0) print '(i10,f14.3)', 8 * length, seconds / rounds / 2 * 1d6
    length = length * 8
  end do
  call fmpl_finalize(ier)
  call try(ier)

contains

  include 'example.inc'

end program ping_pong
