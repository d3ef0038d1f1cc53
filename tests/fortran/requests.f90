! Several requests at a time, from Fortran.
program requests
  use fmpl
  implicit none
  integer, parameter :: n = 4
  integer :: rank, ranks, next, before, k, ier, which, count, done
  integer, asynchronous :: out(n), in(n)
  integer :: codes(2 * n), places(2 * n)
  logical :: seen(2 * n)
  type(fmpl_request) :: r(2 * n)

  call fmpl_init(FMPL_NULL, FMPL_NULL, n, ier)
  call check(ier)
  call fmpl_comm_rank(FMPL_COMM_WORLD, rank, ier)
  call fmpl_comm_size(FMPL_COMM_WORLD, ranks, ier)
  next = mod(rank + 1, ranks)
  before = mod(rank + ranks - 1, ranks)

  call begin()
  call fmpl_waitall(r, 2 * n, codes, ier)
  call check(ier)
  if (any(codes /= FMPL_SUCCESS)) error stop 'codes of waitall'
  call end()

  call begin()
  seen = .false.
  do k = 1, 2 * n
    call fmpl_waitany(r, 2 * n, which, ier)
    call check(ier)
    if (seen(which)) error stop 'waitany twice'
    seen(which) = .true.
  end do
  call fmpl_waitany(r, 2 * n, which, ier)
  call check(ier)
  if (which /= 0 .or. .not. all(seen)) error stop 'waitany'
  call end()

  call begin()
  k = 0
  do while (k < 2 * n)
    call fmpl_waitsome(r, 2 * n, count, places, codes, ier)
    call check(ier)
    if (count < 1 .or. any(places(1:count) < 1) .or. any(codes(1:count) /= 0)) error stop 'waitsome'
    k = k + count
  end do
  call end()

  call begin()
  done = 0
  do while (done == 0)
    call fmpl_testall(r, 2 * n, done, codes, ier)
    call check(ier)
  end do
  call end()

  r(1) = fmpl_request(kind=99)
  call fmpl_waitall(r, 1, codes, ier)
  if (ier /= FMPL_ERR_ARGUMENT .or. codes(1) /= FMPL_ERR_ARGUMENT) error stop 'no kind'
  call prepared()
  call fmpl_finalize(ier)
  call check(ier)
contains
  ! Messages that are prepared once and begun over and over.
  subroutine prepared()
    integer, asynchronous, save :: one, other
    call fmpl_send_start(next, 0, FMPL_COMM_WORLD, ier)
    if (ier /= FMPL_ERR_REQUEST) error stop 'nothing prepared to send'
    call fmpl_recv_start(before, 0, FMPL_COMM_WORLD, ier)
    if (ier /= FMPL_ERR_REQUEST) error stop 'nothing prepared to receive'
    call fmpl_send_init(one, 4, next, 0, FMPL_COMM_WORLD, ier)
    call check(ier)
    call fmpl_recv_init(other, 4_8, before, 0, FMPL_COMM_WORLD, ier)
    call check(ier)
    do k = 1, 50
      call fmpl_recv_start(before, 0, FMPL_COMM_WORLD, ier)
      call check(ier)
      one = 1000 * rank + k
      call fmpl_send_start(next, 0, FMPL_COMM_WORLD, ier)
      call check(ier)
      call fmpl_irecv_wait(before, 0, FMPL_COMM_WORLD, ier)
      call check(ier)
      call fmpl_isend_wait(next, 0, FMPL_COMM_WORLD, ier)
      call check(ier)
      if (other /= 1000 * before + k) error stop 'prepared'
    end do
  end subroutine prepared
  subroutine begin()
    in = -1
    do k = 1, n
      out(k) = 100 * rank + k
      call fmpl_irecv(in(k), 4, before, k - 1, FMPL_COMM_WORLD, ier)
      call check(ier)
      r(k) = fmpl_request(kind=FMPL_REQUEST_RECV, peer=before, index=k - 1)
    end do
    do k = 1, n
      call fmpl_isend(out(k), 4, next, k - 1, FMPL_COMM_WORLD, ier)
      call check(ier)
      r(n + k) = fmpl_request(kind=FMPL_REQUEST_SEND, peer=next, index=k - 1)
    end do
  end subroutine begin
  subroutine end()
    if (any(in /= [(100 * before + k, k = 1, n)])) error stop 'messages'
    if (any(r%kind /= FMPL_REQUEST_NONE) .or. any(r(1:n)%ticket /= 4)) error stop 'requests'
  end subroutine end
  subroutine check(code)
    integer, intent(in) :: code
    character(len=200) :: text
    integer :: told
    if (code == FMPL_SUCCESS) return
    call fmpl_last_error(text, told)
    write (*, *) code, trim(text)
    error stop 1
  end subroutine check
end program requests
