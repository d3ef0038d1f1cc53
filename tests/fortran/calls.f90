! Every subroutine of the module is called, and its effect checked, on any number of ranks, one included.
!
!     fmpl run -n 3 ./calls
module checks
  use fmpl
  implicit none
  integer :: rank = -1, nranks = 0, next, last

contains

  subroutine ok(code, what)
    integer, intent(in) :: code
    character(len=*), intent(in) :: what
    integer :: ignored
    character(len=300) :: reason
    if (code == FMPL_SUCCESS) return
    call fmpl_last_error(reason, ignored)
    print '(a,i0,4a)', 'rank ', rank, ': ', what, ': ', trim(reason)
    error stop 1
  end subroutine ok

  subroutine fails(code, expected, what)
    integer, intent(in) :: code, expected
    character(len=*), intent(in) :: what
    integer :: ignored
    character(len=300) :: reason, meaning
    call fmpl_last_error(reason, ignored)
    call fmpl_strerror(expected, meaning, ignored)
    call check(code == expected, what)
    call check(index(reason, trim(meaning)) == 1, what // ': the text is: ' // trim(reason))
  end subroutine fails

  subroutine check(right, what)
    logical, intent(in) :: right
    character(len=*), intent(in) :: what
    if (right) return
    print '(a,i0,3a)', 'rank ', rank, ': wrong: ', what
    error stop 1
  end subroutine check

  ! What rank `from` sends as number k of message m.
  elemental integer function value(from, m, k)
    integer, intent(in) :: from, m, k
    value = from * 1000003 + m * 1009 + k
  end function value

end module checks

program calls
  use fmpl
  use checks
  use, intrinsic :: iso_c_binding
  implicit none
  integer, parameter :: n = 50000, count = 40
  integer, asynchronous :: a(n), b(n)
  integer :: ier, flag, length, idx, version, nsend, nspool, fd
  integer(8) :: length8
  integer(8) :: displ(100), lens(100)
  integer(8), allocatable :: ma(:), fa(:)
  integer(8) :: spool(100000)
  real(8) :: t
  character(len=5) :: short
  character(len=200) :: text

  call fmpl_initialized(flag, ier)
  call ok(ier, 'initialized')
  call check(flag == 0, 'not initialised yet')
  call fmpl_last_error(text, ier)
  call check(text == ' ', 'no error yet')
  call fmpl_barrier(FMPL_COMM_WORLD, ier)
  call fails(ier, FMPL_ERR_INIT, 'barrier before init')
  call fmpl_last_error(short, ier)
  call fmpl_last_error(text, ier)
  call check(len_trim(text) > 5 .and. short == text(1:5), 'a short variable takes the beginning')
  call fmpl_strerror(FMPL_ERR_INDEX, text, ier)
  call ok(ier, 'strerror')
  call check(text == 'index out of range', 'strerror')
  call fmpl_version(version, ier)
  call ok(ier, 'version')
  call check(version == FMPL_VERSION_NUMBER, 'version')
  call fmpl_init(FMPL_NULL, FMPL_NULL, -1, ier)
  call fails(ier, FMPL_ERR_ARGUMENT, 'negative count')
  allocate (ma(count * FMPL_MA_BYTES / 8), fa(count * FMPL_FA_BYTES / 8))
  ma = 7
  fa = 8
  call fmpl_init(ma, fa, count, ier)
  call ok(ier, 'init')
  call fmpl_init(FMPL_NULL, FMPL_NULL, 1, ier)
  call ok(ier, 'init again')
  call fmpl_finalize(ier)
  call ok(ier, 'the first finalize')
  call check(all(ma == 7) .and. all(fa == 8), 'areas left alone')
  call fmpl_initialized(flag, ier)
  call check(flag == 1, 'initialised')
  call fmpl_comm_rank(FMPL_COMM_WORLD, rank, ier)
  call ok(ier, 'comm_rank')
  call fmpl_comm_size(FMPL_COMM_WORLD, nranks, ier)
  call ok(ier, 'comm_size')
  call check(rank >= 0 .and. rank < nranks, 'rank and size')
  next = mod(rank + 1, nranks)
  last = mod(rank + nranks - 1, nranks)

  call blocking()
  call non_blocking()
  call shapes()
  call modes()
  call the_rest()
  call any_source()
  call communicators()
  call loans()
  call wrong_use()

  call fmpl_barrier(FMPL_COMM_WORLD, ier)
  call ok(ier, 'barrier')
  call fmpl_finalize(ier)
  call ok(ier, 'finalize')
  call fmpl_initialized(flag, ier)
  call check(flag == 0, 'finalized')
  call fmpl_send(a, 4, 0, 0, FMPL_COMM_WORLD, ier)
  call fails(ier, FMPL_ERR_INIT, 'send after finalize')
  if (rank == 0) print '(a,i0,a)', 'calls: every subroutine on ', nranks, ' ranks'

contains

  ! Fills what is sent with message m, and clears what is received.
  subroutine fresh(m)
    integer, intent(in) :: m
    integer :: i
    a = [(value(rank, m, i), i = 1, n)]
    b = -1
  end subroutine fresh

  subroutine arrived(m, upto, what)
    integer, intent(in) :: m, upto
    character(len=*), intent(in) :: what
    integer :: i
    call check(all(b(1:upto) == [(value(last, m, i), i = 1, upto)]) .and. all(b(upto + 1:) == -1), what)
  end subroutine arrived

  subroutine blocking()
    call fresh(1)
    if (rank == 0) call fmpl_send(a, 4 * n, next, 0, FMPL_COMM_WORLD, ier)
    call fmpl_recv(b, 4 * n, last, 0, FMPL_COMM_WORLD, ier)
    call ok(ier, 'recv')
    if (rank /= 0) call fmpl_send(a, 4 * n, next, 0, FMPL_COMM_WORLD, ier)
    call ok(ier, 'send')
    call arrived(1, n, 'send and recv')
    call fmpl_received(last, 0, FMPL_COMM_WORLD, length, idx, ier)
    call ok(ier, 'received')
    call check(length == 4 * n .and. idx == 0, 'received')

    call fresh(2)
    if (rank == 0) call fmpl_send(a, 400_8, next, 1, FMPL_COMM_WORLD, ier)
    call fmpl_recv(b, 4_8 * n, last, 1, FMPL_COMM_WORLD, ier)
    call ok(ier, 'recv, INTEGER(8)')
    if (rank /= 0) call fmpl_send(a, 400_8, next, 1, FMPL_COMM_WORLD, ier)
    call ok(ier, 'send, INTEGER(8)')
    call arrived(2, 100, 'send and recv, INTEGER(8)')
    call fmpl_received(last, 1, FMPL_COMM_WORLD, length8, idx, ier)
    call ok(ier, 'received, INTEGER(8)')
    call check(length8 == 400 .and. idx == 1, 'received, INTEGER(8)')

    call fresh(3)
    call fmpl_sendrecv(a, 4 * n, next, 2, b, 4 * n, last, 2, FMPL_COMM_WORLD, ier)
    call ok(ier, 'sendrecv')
    call arrived(3, n, 'sendrecv')
    call fresh(4)
    call fmpl_sendrecv(a, 40_8, next, 2, b, 4_8 * n, last, 2, FMPL_COMM_WORLD, ier)
    call ok(ier, 'sendrecv, INTEGER(8)')
    call arrived(4, 10, 'sendrecv, INTEGER(8)')
    call fmpl_sendrecv(a, 40, FMPL_PROC_NULL, 2, b, 40, FMPL_PROC_NULL, 2, FMPL_COMM_WORLD, ier)
    call ok(ier, 'nobody')
  end subroutine blocking

  subroutine non_blocking()
    call fresh(5)
    call fmpl_irecv(b, 4 * n, last, 3, FMPL_COMM_WORLD, ier)
    call ok(ier, 'irecv')
    call fmpl_irecv_test(last, 3, FMPL_COMM_WORLD, flag, ier)
    call ok(ier, 'irecv_test')
    call fmpl_barrier(FMPL_COMM_WORLD, ier)
    call ok(ier, 'barrier')
    call fmpl_isend(a, 4 * n, next, 3, FMPL_COMM_WORLD, ier)
    call ok(ier, 'isend')
    if (flag == 0) call fmpl_irecv_wait(last, 3, FMPL_COMM_WORLD, ier)
    call ok(ier, 'irecv_wait')
    call fmpl_isend_wait(next, 3, FMPL_COMM_WORLD, ier)
    call ok(ier, 'isend_wait')
    call arrived(5, n, 'isend and irecv')

    call fresh(6)
    call fmpl_irecv(b, 4_8 * n, last, FMPL_TAG_ANY, FMPL_COMM_WORLD, ier)
    call ok(ier, 'irecv, INTEGER(8)')
    call fmpl_isend(a, 4000_8, next, 17, FMPL_COMM_WORLD, ier)
    call ok(ier, 'isend, INTEGER(8)')
    flag = 0
    do while (flag == 0)
      call fmpl_irecv_test(last, FMPL_TAG_ANY, FMPL_COMM_WORLD, flag, ier)
      call ok(ier, 'irecv_test')
    end do
    flag = 0
    do while (flag == 0)
      call fmpl_isend_test(next, 17, FMPL_COMM_WORLD, flag, ier)
      call ok(ier, 'isend_test')
    end do
    call arrived(6, 1000, 'any index')
    call fmpl_received(last, FMPL_TAG_ANY, FMPL_COMM_WORLD, length, idx, ier)
    call ok(ier, 'received')
    call check(length == 4000 .and. idx == 17, 'the index that matched')

    call fmpl_irecv(b, 400, last, 18, FMPL_COMM_WORLD, ier)
    call ok(ier, 'irecv')
    call fmpl_irecv_cancel(last, 18, FMPL_COMM_WORLD, flag, ier)
    call ok(ier, 'irecv_cancel')
    call check(flag == 1, 'cancelled')
    call fmpl_irecv_wait(last, 18, FMPL_COMM_WORLD, ier)
    call fails(ier, FMPL_ERR_REQUEST, 'wait for what was cancelled')

    call fmpl_probe(last, 19, FMPL_COMM_WORLD, flag, length, ier)
    call ok(ier, 'probe')
    call check(flag == 0 .and. length == 0, 'nothing there')
    call fmpl_barrier(FMPL_COMM_WORLD, ier)
    call fmpl_send(a, 44, next, 19, FMPL_COMM_WORLD, ier)
    call ok(ier, 'send')
    flag = 0
    do while (flag == 0)
      call fmpl_probe(last, 19, FMPL_COMM_WORLD, flag, length8, ier)
      call ok(ier, 'probe, INTEGER(8)')
    end do
    call check(length8 == 44, 'probe, INTEGER(8)')
    call fmpl_probe(last, 19, FMPL_COMM_WORLD, flag, length, ier)
    call check(flag == 1 .and. length == 44, 'probe')
    b = -1
    call fmpl_recv(b, 20, last, 19, FMPL_COMM_WORLD, ier)
    call fails(ier, FMPL_ERR_TRUNCATE, 'a message longer than the buffer')
    call arrived(6, 5, 'the first bytes of it')
  end subroutine non_blocking

  subroutine shapes()
    integer :: i
    ! Every other run of 10 numbers goes, and lands in runs of 20 of 25.
    call fresh(7)
    if (rank == 0) call fmpl_send_block(a, 40_8, 100_8, 80_8, next, 20, FMPL_COMM_WORLD, ier)
    call fmpl_recv_block(b, 80_8, 50_8, 100_8, last, 20, FMPL_COMM_WORLD, ier)
    call ok(ier, 'recv_block')
    if (rank /= 0) call fmpl_send_block(a, 40_8, 100_8, 80_8, next, 20, FMPL_COMM_WORLD, ier)
    call ok(ier, 'send_block')
    call blocks_arrived(7, 'blocks')

    call fresh(8)
    call fmpl_irecv_block(b, 80_8, 50_8, 100_8, last, 21, FMPL_COMM_WORLD, ier)
    call ok(ier, 'irecv_block')
    call fmpl_isend_block(a, 40_8, 100_8, 80_8, next, 21, FMPL_COMM_WORLD, ier)
    call ok(ier, 'isend_block')
    call fmpl_irecv_wait(last, 21, FMPL_COMM_WORLD, ier)
    call ok(ier, 'irecv_wait')
    call fmpl_isend_wait(next, 21, FMPL_COMM_WORLD, ier)
    call ok(ier, 'isend_wait')
    call blocks_arrived(8, 'blocks, non-blocking')

    ! A list of growing pieces in reverse order becomes the beginning of b.
    call fresh(9)
    call backwards()
    if (rank == 0) call fmpl_send_list(a, displ, lens, 100, next, 22, FMPL_COMM_WORLD, ier)
    call fmpl_recv(b, 4 * n, last, 22, FMPL_COMM_WORLD, ier)
    call ok(ier, 'recv')
    if (rank /= 0) call fmpl_send_list(a, displ, lens, 100, next, 22, FMPL_COMM_WORLD, ier)
    call ok(ier, 'send_list')
    call list_arrived(9, 'a list sent')

    ! The descriptors of a pending request are the library's: the arrays may be used again at once.
    call fresh(10)
    displ(1:2) = [20000_8, 0_8]
    lens(1:2) = [400_8, 4_8 * 4950]
    call fmpl_irecv_list(b, displ, lens, 2, last, 23, FMPL_COMM_WORLD, ier)
    call ok(ier, 'irecv_list')
    call backwards()
    call fmpl_isend_list(a, displ, lens, 100, next, 23, FMPL_COMM_WORLD, ier)
    call ok(ier, 'isend_list')
    displ = -1
    lens = -1
    call fmpl_irecv_wait(last, 23, FMPL_COMM_WORLD, ier)
    call ok(ier, 'irecv_wait')
    call fmpl_isend_wait(next, 23, FMPL_COMM_WORLD, ier)
    call ok(ier, 'isend_wait')
    b(1:5050) = [b(5001:5100), b(1:4950)]
    call list_arrived(10, 'lists, non-blocking')

    call fresh(11)
    displ(1:2) = [0_8, 4000_8]
    lens(1:2) = [400_8, 400_8]
    if (rank == 0) call fmpl_send(a, 800, next, 24, FMPL_COMM_WORLD, ier)
    call fmpl_recv_list(b, displ, lens, 2, last, 24, FMPL_COMM_WORLD, ier)
    call ok(ier, 'recv_list')
    if (rank /= 0) call fmpl_send(a, 800, next, 24, FMPL_COMM_WORLD, ier)
    call check(all(b(1:100) == [(value(last, 11, i), i = 1, 100)]), 'the first piece')
    call check(all(b(1001:1100) == [(value(last, 11, i), i = 101, 200)]), 'the second piece')
    call check(all(b(101:1000) == -1), 'between the pieces')
  end subroutine shapes

  subroutine blocks_arrived(m, what)
    integer, intent(in) :: m
    character(len=*), intent(in) :: what
    integer :: i, at
    do i = 0, 999
      at = 25 * (i / 20) + mod(i, 20) + 1
      call check(b(at) == value(last, m, 20 * (i / 10) + mod(i, 10) + 1), what)
    end do
    call check(all(b(21:25) == -1), what // ': between the runs')
  end subroutine blocks_arrived

  ! Piece k has 101 - k numbers; the pieces lie one behind the other in reverse order.
  subroutine backwards()
    integer :: i, at
    at = 0
    do i = 100, 1, -1
      displ(i) = 4_8 * at
      lens(i) = 4_8 * (101 - i)
      at = at + 101 - i
    end do
  end subroutine backwards

  subroutine list_arrived(m, what)
    integer, intent(in) :: m
    character(len=*), intent(in) :: what
    integer :: i, j, at, begin
    at = 0
    do i = 1, 100
      begin = (100 - i) * (101 - i) / 2
      do j = 1, 101 - i
        at = at + 1
        call check(b(at) == value(last, m, begin + j), what)
      end do
    end do
  end subroutine list_arrived

  subroutine modes()
    integer :: i, waiting
    integer(8) :: counted
    call fmpl_barrier(FMPL_COMM_WORLD, ier)
    call fmpl_sendbuf_check(nsend, nspool, ier)
    call ok(ier, 'sendbuf_check')
    call check(nspool == 0, 'an empty spool')
    call fmpl_counter(FMPL_COUNTER_SHM_MESSAGES, counted, ier)
    call ok(ier, 'counter')
    call check((counted > 0) .eqv. (nranks > 1), 'counter')
    do i = 1, 4
      select case (i)
      case (1)
        call fmpl_sendbuf_set(FMPL_NULL, 1048576, 0, ier)
      case (2)
        call fmpl_sendbuf_set(spool, 8_8 * 100000, 0, ier)
      case (3)
        call fmpl_comm_sendbuf_set(FMPL_COMM_WORLD, FMPL_NULL, 1048576, 0, ier)
      case (4)
        call fmpl_comm_sendbuf_set(FMPL_COMM_WORLD, FMPL_NULL, 1048576_8, 0, ier)
      end select
      call ok(ier, 'sendbuf_set')
      call fresh(20 + i)
      call fmpl_send(a, 40000, next, 24 + i, FMPL_COMM_WORLD, ier)
      call ok(ier, 'buffered send')
      call fmpl_sendbuf_check(nsend, nspool, ier)
      call ok(ier, 'sendbuf_check')
      call check(nsend + nspool == 1, 'one message spooled')
      waiting = nspool
      call fmpl_barrier(FMPL_COMM_WORLD, ier)
      call fmpl_recv(b, 40000, last, 24 + i, FMPL_COMM_WORLD, ier)
      call ok(ier, 'recv from the spool')
      call arrived(20 + i, 10000, 'what was spooled')
      call fmpl_barrier(FMPL_COMM_WORLD, ier)
      call fmpl_sendbuf_check(nsend, nspool, ier)
      call check(nsend == waiting .and. nspool == 0, 'all delivered')
    end do
    call fmpl_comm_sendbuf_set(FMPL_COMM_WORLD, FMPL_NULL, 16777216, 10, ier)
    call ok(ier, 'sendbuf_set')
    call fmpl_sendbuf_set(FMPL_NULL, 16777216, 10, ier)
    call ok(ier, 'sendbuf_set')
  end subroutine modes

  subroutine the_rest()
    type(c_ptr) :: memory, theirs
    integer, pointer :: shared(:)
    integer :: i, bytes
    integer(8) :: bytes8
    t = fmpl_wtime()
    call fmpl_progress(ier)
    call ok(ier, 'progress')
    call fmpl_event_fd(fd, ier)
    call ok(ier, 'event_fd')
    call check(fd >= 0, 'event_fd')
    do i = 1, 2
      if (i == 1) call fmpl_alloc(4 * n, memory, ier)
      if (i == 2) call fmpl_alloc(4_8 * n, memory, ier)
      call ok(ier, 'alloc')
      call c_f_pointer(memory, shared, [n])
      call fresh(30 + i)
      call fmpl_irecv(shared, 4 * n, last, 30, FMPL_COMM_WORLD, ier)
      call ok(ier, 'irecv')
      call fmpl_send(a, 4 * n, next, 30, FMPL_COMM_WORLD, ier)
      call ok(ier, 'send')
      call fmpl_irecv_wait(last, 30, FMPL_COMM_WORLD, ier)
      call ok(ier, 'irecv_wait')
      b = shared
      call arrived(30 + i, n, 'into memory of fmpl_alloc')
      call fmpl_free(memory, ier)
      call ok(ier, 'free')
    end do
    ! Memory of all ranks, side by side.
    do i = 1, 2
      if (i == 1) call fmpl_shared_alloc(8, FMPL_COMM_WORLD, memory, ier)
      if (i == 2) call fmpl_shared_alloc(8_8, FMPL_COMM_WORLD, memory, ier)
      call ok(ier, 'shared_alloc')
      call c_f_pointer(memory, shared, [2])
      shared(2) = 1000 + rank
      call fmpl_barrier(FMPL_COMM_WORLD, ier)
      if (i == 1) call fmpl_shared_query(memory, next, theirs, bytes, ier)
      if (i == 2) call fmpl_shared_query(memory, next, theirs, bytes8, ier)
      call ok(ier, 'shared_query')
      call c_f_pointer(theirs, shared, [2])
      call check(shared(2) == 1000 + next .and. merge(int(bytes, 8), bytes8, i == 1) == 8, 'the part of another rank')
      call fmpl_shared_free(memory, ier)
      call ok(ier, 'shared_free')
    end do
    call fmpl_shared_free(memory, ier)
    call fails(ier, FMPL_ERR_ARGUMENT, 'freeing it twice')
    call fmpl_alloc(-1, memory, ier)
    call fails(ier, FMPL_ERR_ARGUMENT, 'alloc of a negative size')
    call check(.not. c_associated(memory), 'no memory')
    call check(fmpl_wtime() >= t, 'time')
  end subroutine the_rest

  ! Everybody sends to rank 0, which takes what comes; then rank 0 sends to all.
  subroutine any_source()
    integer :: k, left, src, length, there, done
    integer(8) :: length8, ticket, members(1)
    call fmpl_recv_any_limit(2, 3, FMPL_COMM_WORLD, ier)
    call ok(ier, 'recv_any_limit')
    do k = 1, 4
      call fresh(50 + k)
      if (rank /= 0) then
        if (k == 1) call fmpl_send_any(a, 400, 0, 3, FMPL_COMM_WORLD, ier)
        if (k == 2) call fmpl_send_any(a, 4_8 * n, 0, 3, FMPL_COMM_WORLD, ier)
        if (k == 3) call fmpl_isend_any(a, 400, 0, 3, FMPL_COMM_WORLD, ier)
        if (k == 4) call fmpl_isend_any(a, 4_8 * n, 0, 3, FMPL_COMM_WORLD, ier)
        call ok(ier, 'send_any')
        if (k > 2) then
          call fmpl_isend_any_test(0, 3, FMPL_COMM_WORLD, done, ier)
          call ok(ier, 'isend_any_test')
          if (done == 0) call fmpl_isend_any_wait(0, 3, FMPL_COMM_WORLD, ier)
          call ok(ier, 'isend_any_wait')
        end if
      else
        do left = 1, nranks - 1
          done = 0
          if (k == 1) then
            call fmpl_recv_any_from(b, 4 * n, 3, FMPL_COMM_WORLD, src, length, ier)
          else if (k == 2) then
            call fmpl_recv_any_from(b, 4_8 * n, 3, FMPL_COMM_WORLD, src, length8, ier)
            length = int(length8)
          else
            if (k == 3) call fmpl_irecv_any(b, 4 * n, 3, FMPL_COMM_WORLD, ier)
            if (k == 4) call fmpl_irecv_any(b, 4_8 * n, 3, FMPL_COMM_WORLD, ier)
            call ok(ier, 'irecv_any')
            call fmpl_irecv_any_test(3, FMPL_COMM_WORLD, done, src, length, ier)
            call ok(ier, 'irecv_any_test')
            if (done == 0) call fmpl_irecv_any_wait(3, FMPL_COMM_WORLD, src, length, ier)
          end if
          call ok(ier, 'recv_any')
          call check(length == merge(400, 4 * n, mod(k, 2) == 1), 'the length')
          call check(src > 0 .and. src < nranks, 'the source')
        end do
        call fmpl_probe_any(3, FMPL_COMM_WORLD, there, src, length, ier)
        call ok(ier, 'probe_any')
        call check(there == 0 .and. length == 0, 'nothing is left')
      end if
      call fmpl_barrier(FMPL_COMM_WORLD, ier)
    end do
    call fmpl_irecv_any(b, 4, 3, FMPL_COMM_WORLD, ier)
    call fmpl_irecv_any_cancel(3, FMPL_COMM_WORLD, done, ier)
    call ok(ier, 'irecv_any_cancel')
    call check(done == 1, 'cancelled')
    call fmpl_send_any(a, 4, rank, 2, FMPL_COMM_WORLD, ier)
    call fmpl_recv_any(b, 4, 2, FMPL_COMM_WORLD, ier)
    call ok(ier, 'recv_any')
    call check(b(1) == a(1), 'to itself')
    call fmpl_recv_any(b, -4, 2, FMPL_COMM_WORLD, ier)
    call fails(ier, FMPL_ERR_ARGUMENT, 'a negative size')

    members(1) = 2_8**nranks - 1
    do k = 1, 2
      call fresh(60 + k)
      if (rank == 0) then
        if (k == 1) call fmpl_mcast(a, 4 * n, members, FMPL_COMM_WORLD, ticket, ier)
        if (k == 2) call fmpl_mcast(a, 4_8 * n, members, FMPL_COMM_WORLD, ticket, ier)
        call ok(ier, 'mcast')
      end if
      if (k == 1) then
        call fmpl_mcast_recv(b, 4 * n, FMPL_COMM_WORLD, length, src, ier)
      else
        call fmpl_mcast_irecv(b, 4 * n, FMPL_COMM_WORLD, ier)
        call ok(ier, 'mcast_irecv')
        call fmpl_mcast_irecv_test(FMPL_COMM_WORLD, done, length, src, ier)
        call ok(ier, 'mcast_irecv_test')
        if (done == 0) call fmpl_mcast_irecv_wait(FMPL_COMM_WORLD, length, src, ier)
      end if
      call ok(ier, 'mcast_recv')
      call check(length == 4 * n .and. src == 0, 'from the master')
      if (rank == 0) then
        if (k == 1) call fmpl_mcast_wait(ticket, ier)
        done = 0
        do while (k == 2 .and. done == 0)
          call fmpl_mcast_test(ticket, done, ier)
        end do
        call ok(ier, 'mcast_wait')
        call check(all(a == b), 'the same')
      end if
    end do
    if (rank == 0) then
      call fmpl_mcast(a, 4 * n, members, FMPL_COMM_WORLD, ticket, ier)
      call ok(ier, 'mcast beside tasks')
      do k = 1, nranks - 1
        call fmpl_send_any(a, 4, k, 2, FMPL_COMM_WORLD, ier)
        call ok(ier, 'a task')
      end do
    end if
    left = 0
    do k = 1, min(2, rank + 1)
      call fmpl_recv_any_or_mcast(b, 4 * n, 2, FMPL_COMM_WORLD, src, length, done, ier)
      call ok(ier, 'recv_any_or_mcast')
      call check(src == 0 .and. length == merge(4 * n, 4, done == 1), 'a task or a multicast')
      left = left + done
    end do
    call check(left == 1, 'one multicast')
    if (rank == 0) call fmpl_mcast_wait(ticket, ier)
    call fmpl_mcast_irecv(b, 4, FMPL_COMM_WORLD, ier)
    call fmpl_mcast_irecv_cancel(FMPL_COMM_WORLD, ier)
    call ok(ier, 'mcast_irecv_cancel')
  end subroutine any_source

  subroutine communicators()
    integer :: parity, reversed, twin, none, r, s, there, word, got, ends(2)
    character(len=63) :: name
    call fmpl_comm_create(parity, mod(rank, 2), ier)
    call ok(ier, 'comm_create')
    call fmpl_comm_rank(parity, r, ier)
    call fmpl_comm_size(parity, s, ier)
    call check(r == rank / 2 .and. s == (nranks + 1 - mod(rank, 2)) / 2, 'even and odd')
    call fmpl_comm_create(none, -1, ier)
    call ok(ier, 'comm_create, negative')
    call check(none == FMPL_COMM_NULL, 'none')
    call fmpl_comm_split(FMPL_COMM_WORLD, 2, -rank, reversed, ier)
    call ok(ier, 'comm_split')
    call fmpl_comm_split_node(FMPL_COMM_WORLD, 0, none, ier)
    call ok(ier, 'comm_split_node')
    call fmpl_comm_rank(none, there, ier)
    call check(there == rank, 'a node')
    call fmpl_comm_free(none, ier)
    call check(ier == 0 .and. none == FMPL_COMM_NULL, 'a node, freed')
    ! Those at the ends, backwards; nobody else calls it.
    if (rank == 0 .or. rank == nranks - 1) then
      ends = [nranks - 1, 0]
      call fmpl_comm_group_create(FMPL_COMM_WORLD, [nranks - 1, 0], min(2, nranks), none, ier)
      call ok(ier, 'comm_group_create, of constants')
      call fmpl_comm_free(none, ier)
      call fmpl_comm_group_create(FMPL_COMM_WORLD, ends, min(2, nranks), none, ier)
      call ok(ier, 'comm_group_create')
      call fmpl_comm_rank(none, there, ier)
      call check(there == merge(1, 0, rank == 0 .and. nranks > 1), 'the ends, backwards')
      call fmpl_comm_free(none, ier)
      call ok(ier, 'the ends, freed')
    end if
    call fmpl_comm_dup(parity, twin, ier)
    call ok(ier, 'comm_dup')
    call fmpl_comm_translate(twin, r, reversed, there, ier)
    call ok(ier, 'comm_translate')
    call check(there == nranks - 1 - rank, 'translated')
    word = 100 + rank
    call fmpl_send(word, 4, mod(r + 1, s), 0, parity, ier)
    call ok(ier, 'send on parity')
    word = 200 + rank
    call fmpl_send(word, 4, mod(r + 1, s), 0, twin, ier)
    call ok(ier, 'send on twin')
    call fmpl_recv(got, 4, mod(r + s - 1, s), 0, twin, ier)
    call check(ier == 0 .and. got == 200 + mod(rank, 2) + 2 * mod(r + s - 1, s), 'on twin')
    call fmpl_recv(got, 4, mod(r + s - 1, s), 0, parity, ier)
    call check(ier == 0 .and. got == 100 + mod(rank, 2) + 2 * mod(r + s - 1, s), 'on parity')
    call fmpl_barrier(reversed, ier)
    call ok(ier, 'barrier')
    call fmpl_comm_name(parity, name, ier)
    call check(ier == 0 .and. name == ' ', 'no name')
    call fmpl_comm_set_name(parity, 'even or odd  ', ier)
    call ok(ier, 'comm_set_name')
    call fmpl_comm_name(parity, name, ier)
    call check(ier == 0 .and. name == 'even or odd', 'name')
    call fmpl_comm_name(parity, name(1:10), ier)
    call check(ier == FMPL_ERR_TRUNCATE, 'no room for the name')
    call fmpl_comm_free(parity, ier)
    call ok(ier, 'comm_free')
    call check(parity == FMPL_COMM_NULL, 'freed')
    call fmpl_comm_free(twin, ier)
    call ok(ier, 'comm_free')
    call fmpl_comm_free(reversed, ier)
    call ok(ier, 'comm_free')
    call fmpl_comm_free(reversed, ier)
    call fails(ier, FMPL_ERR_COMM, 'freeing twice')
  end subroutine communicators

  ! Messages that are handed over.
  subroutine loans()
    type(c_ptr) :: mine, theirs
    integer, pointer :: words(:)
    integer :: length, done, m, from
    integer(8) :: length8, sent, members(2)
    do m = 70, 71
      call fresh(m)
      if (m == 70) call fmpl_loan(400, mine, ier)
      if (m == 71) call fmpl_loan(400_8, mine, ier)
      call ok(ier, 'loan')
      call c_f_pointer(mine, words, [100])
      words = a(1:100)
      if (m == 70) call fmpl_send_loan(mine, 400, next, 0, FMPL_COMM_WORLD, ier)
      if (m == 71) call fmpl_send_loan(mine, 400_8, next, 0, FMPL_COMM_WORLD, ier)
      call ok(ier, 'send_loan')
      if (m == 70) then
        call fmpl_recv_loan(theirs, length, last, 0, FMPL_COMM_WORLD, ier)
        length8 = length
      else
        call fmpl_recv_loan(theirs, length8, last, 0, FMPL_COMM_WORLD, ier)
      end if
      call ok(ier, 'recv_loan')
      call check(length8 == 400, 'the length of a loan')
      call c_f_pointer(theirs, words, [100])
      b(1:100) = words
      call arrived(m, 100, 'recv_loan')
      call fmpl_loan_return(theirs, ier)
      call ok(ier, 'loan_return')
      call fmpl_loan_return(theirs, ier)
      call fails(ier, FMPL_ERR_ARGUMENT, 'returning twice')

      call fmpl_irecv_loan(last, 1, FMPL_COMM_WORLD, ier)
      call ok(ier, 'irecv_loan')
      call fmpl_send(a, 400, next, 1, FMPL_COMM_WORLD, ier)
      call ok(ier, 'send')
      if (m == 70) then
        call fmpl_irecv_loan_wait(theirs, length, last, 1, FMPL_COMM_WORLD, ier)
        length8 = length
      else
        call fmpl_irecv_loan_wait(theirs, length8, last, 1, FMPL_COMM_WORLD, ier)
      end if
      call ok(ier, 'irecv_loan_wait')
      call c_f_pointer(theirs, words, [100])
      call check(length8 == 400 .and. words(100) == value(last, m, 100), 'irecv_loan_wait')
      call fmpl_loan_return(theirs, ier)
      call ok(ier, 'loan_return')

      call fmpl_irecv_loan(last, 1, FMPL_COMM_WORLD, ier)
      call ok(ier, 'irecv_loan')
      call fmpl_send(a, 400, next, 1, FMPL_COMM_WORLD, ier)
      call ok(ier, 'send')
      done = 0
      do while (done == 0)
        if (m == 70) then
          call fmpl_irecv_loan_test(theirs, length, last, 1, FMPL_COMM_WORLD, done, ier)
          length8 = length
        else
          call fmpl_irecv_loan_test(theirs, length8, last, 1, FMPL_COMM_WORLD, done, ier)
        end if
        call ok(ier, 'irecv_loan_test')
      end do
      call check(length8 == 400, 'irecv_loan_test')
      call fmpl_loan_return(theirs, ier)
      call ok(ier, 'loan_return')
    end do
    do m = 72, 74
      call fresh(m)
      call fmpl_loan(400, mine, ier)
      call ok(ier, 'loan')
      call c_f_pointer(mine, words, [100])
      words = a(1:100)
      call fmpl_send_loan_any(mine, 400, next, 2, FMPL_COMM_WORLD, ier)
      call ok(ier, 'send_loan_any')
      if (m == 72) then
        call fmpl_recv_loan_any(theirs, length, 2, FMPL_COMM_WORLD, from, ier)
      else
        call fmpl_irecv_loan_any(2, FMPL_COMM_WORLD, ier)
        call ok(ier, 'irecv_loan_any')
        done = 0
        if (m == 73) call fmpl_irecv_loan_any_wait(theirs, length, 2, FMPL_COMM_WORLD, from, ier)
        do while (m == 74 .and. done == 0)
          call fmpl_irecv_loan_any_test(theirs, length8, 2, FMPL_COMM_WORLD, done, from, ier)
          call ok(ier, 'irecv_loan_any_test')
          if (done /= 0) length = int(length8)
        end do
      end if
      call ok(ier, 'a loan of any source')
      call c_f_pointer(theirs, words, [100])
      call check(length == 400 .and. from == last .and. words(7) == value(last, m, 7), 'a loan of any source')
      call fmpl_loan_return(theirs, ier)
      call ok(ier, 'loan_return')
    end do
    call fmpl_loan(400, mine, ier)
    call c_f_pointer(mine, words, [100])
    words = 75 + rank
    members = 0
    members(next / 64 + 1) = ibset(members(next / 64 + 1), mod(next, 64))
    call fmpl_mcast_loan(mine, 400, members, 3, FMPL_COMM_WORLD, ier)
    call ok(ier, 'mcast_loan')
    call fmpl_recv_loan(theirs, length, last, 3, FMPL_COMM_WORLD, ier)
    call ok(ier, 'recv_loan')
    call c_f_pointer(theirs, words, [100])
    call check(length == 400 .and. all(words == 75 + last), 'mcast_loan')
    call fmpl_loan_return(theirs, ier)
    call ok(ier, 'loan_return')
    call fmpl_counter(FMPL_COUNTER_LOANS, sent, ier)
    call check(ier == 0 .and. sent >= 2, 'loans are counted')
  end subroutine loans

  subroutine wrong_use()
    call fmpl_send(a, -1, next, 0, FMPL_COMM_WORLD, ier)
    call fails(ier, FMPL_ERR_ARGUMENT, 'a negative size')
    call fmpl_recv(b, -1_8, last, 0, FMPL_COMM_WORLD, ier)
    call fails(ier, FMPL_ERR_ARGUMENT, 'a negative size, INTEGER(8)')
    call fmpl_send(a, 4, nranks, 0, FMPL_COMM_WORLD, ier)
    call fails(ier, FMPL_ERR_RANK, 'a rank that there is not')
    call fmpl_isend(a, 4, next, count, FMPL_COMM_WORLD, ier)
    call fails(ier, FMPL_ERR_INDEX, 'an index that there is not')
    call fmpl_irecv(a, 4, last, 0, FMPL_COMM_NULL, ier)
    call fails(ier, FMPL_ERR_COMM, 'no communicator')
    call fmpl_send_block(a, 8_8, -1_8, 8_8, next, 0, FMPL_COMM_WORLD, ier)
    call fails(ier, FMPL_ERR_ARGUMENT, 'a negative number of runs')
    lens(1:2) = [4_8, -4_8]
    displ(1:2) = 0
    call fmpl_irecv_list(b, displ, lens, 2, last, 0, FMPL_COMM_WORLD, ier)
    call fails(ier, FMPL_ERR_ARGUMENT, 'a negative length in a list')
    call fmpl_sendrecv(a, 4, next, 0, b, -4, last, 0, FMPL_COMM_WORLD, ier)
    call fails(ier, FMPL_ERR_ARGUMENT, 'a negative size to receive')
    call fmpl_sendbuf_set(FMPL_NULL, -5, 0, ier)
    call fails(ier, FMPL_ERR_ARGUMENT, 'a spool of negative size')
    ! and all goes on
    call fresh(40)
    call fmpl_sendrecv(a, 400, next, 0, b, 400, last, 0, FMPL_COMM_WORLD, ier)
    call ok(ier, 'sendrecv')
    call arrived(40, 100, 'after the errors')
  end subroutine wrong_use

end program calls
