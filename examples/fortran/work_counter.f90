! Work counter: tasks are shared out by one word of global memory. Whoever wants a task adds one to it; no rank hands out anything.
! Any number of ranks.
!
!     gfortran PREFIX/include/fmpl.f90 work_counter.f90 -o work_counter $(pkg-config --libs fmpl)
!     fmpl run -n 4 ./work_counter
program work_counter
  use, intrinsic :: iso_c_binding
  use fmpl
  implicit none
  integer, parameter :: tasks = 1000
  integer :: rank, nranks, done, task, ier
  integer(c_int64_t) :: counter, own, handle, steps
  integer(c_int64_t), pointer, volatile :: found(:)
  type(c_ptr) :: address

  call acp_init(ier)
  call try(ier)
  call acp_rank(rank, ier)
  call try(ier)
  call acp_procs(nranks, ier)
  call try(ier)
  ! In rank 0's starter memory, whose address everybody knows: the next task, and the steps of all.
  call acp_query_starter_ga(0, counter, ier)
  call try(ier)
  call acp_query_starter_ga(rank, own, ier)
  call try(ier)
  own = own + 1024
  call acp_query_address(own, address, ier)
  call try(ier)
  call c_f_pointer(address, found, [2])
  done = 0
  do
    call acp_add8(own, counter, 1_c_int64_t, ACP_HANDLE_NULL, handle, ier)
    call try(ier)
    call acp_complete(handle, ier)
    call try(ier)
    if (found(1) >= tasks) exit
    call acp_add8(own + 8, counter + 8, work(int(found(1))), ACP_HANDLE_NULL, handle, ier)
    call try(ier)
    done = done + 1
  end do
  call acp_complete(ACP_HANDLE_ALL, ier)
  call try(ier)
  print '(a,i0,a,i0,a)', 'rank ', rank, ' did ', done, ' tasks'
  call acp_sync(ier)
  call try(ier)
  if (rank == 0) then
    steps = 0
    do task = 0, tasks - 1
      steps = steps + work(task)
    end do
    call acp_query_address(counter + 8, address, ier)
    call try(ier)
    call c_f_pointer(address, found, [1])
    if (found(1) /= steps) call acp_abort('the sum is wrong')
    print '(i0,a,i0,a)', tasks, ' tasks done by ', nranks, ' ranks'
  end if
  call acp_finalize(ier)
  call try(ier)

contains
  ! Tasks of very different lengths: the number of steps that 3n + 1 takes to 1.
  function work(task) result(steps)
    integer, intent(in) :: task
    integer(c_int64_t) :: steps, n
    n = task + 1
    steps = 0
    do while (n /= 1)
      if (mod(n, 2_c_int64_t) == 0) then
        n = n / 2
      else
        n = 3 * n + 1
      end if
      steps = steps + 1
    end do
  end function work
  subroutine try(ier)
    integer, intent(in) :: ier
    character(300) :: text
    integer :: ignored
    if (ier == FMPL_SUCCESS) return
    call fmpl_last_error(text, ignored)
    print '(a)', trim(text)
    stop 1
  end subroutine try
end program work_counter
