! Work queue: rank 0 hands out tasks to whoever asks, and takes the results from whoever has one. Any number of ranks.
!
! A worker asks by sending its last result to "any source" at rank 0, which answers on the worker's own index.
!
!     gfortran PREFIX/include/fmpl.f90 work_queue.f90 -o work_queue $(pkg-config --libs fmpl)
!     fmpl run -n 4 ./work_queue
program work_queue
  use fmpl
  implicit none
  integer, parameter :: tasks = 1000, no_more = -1
  integer :: rank, nranks, worker, at_work, next, task, length, ier
  integer :: said(2), results(tasks)

  call fmpl_init(FMPL_NULL, FMPL_NULL, 1, ier)
  call try(ier)
  call fmpl_comm_rank(FMPL_COMM_WORLD, rank, ier)
  call try(ier)
  call fmpl_comm_size(FMPL_COMM_WORLD, nranks, ier)
  call try(ier)
  said = [no_more, 0]
  if (rank == 0) then
    results = no_more
    next = 1
    at_work = nranks - 1
    do while (at_work > 0)
      call fmpl_recv_any_from(said, 8, 0, FMPL_COMM_WORLD, worker, length, ier)
      call try(ier)
      if (said(1) /= no_more) results(said(1)) = said(2)
      task = no_more
      if (next <= tasks) task = next
      next = next + 1
      if (task == no_more) at_work = at_work - 1
      call fmpl_send(task, 4, worker, 0, FMPL_COMM_WORLD, ier)
      call try(ier)
    end do
    do task = 1, tasks
      ! Alone, rank 0 does it all.
      if (results(task) == no_more) results(task) = work(task)
      call expect(results(task) == work(task), 'a result')
    end do
    print '(i0,a,i0,a)', tasks, ' tasks done by ', nranks, ' ranks'
  else
    do
      call fmpl_send_any(said, 8, 0, 0, FMPL_COMM_WORLD, ier)
      call try(ier)
      call fmpl_recv(task, 4, 0, 0, FMPL_COMM_WORLD, ier)
      call try(ier)
      if (task == no_more) exit
      said = [task, work(task)]
    end do
  end if
  call fmpl_finalize(ier)
  call try(ier)

contains

  ! Tasks of very different lengths: the number of steps that 3n + 1 takes to 1.
  integer function work(task)
    integer, intent(in) :: task
    integer(8) :: n
    n = task
    work = 0
    do while (n /= 1)
      if (mod(n, 2_8) == 0) then
        n = n / 2
      else
        n = 3 * n + 1
      end if
      work = work + 1
    end do
  end function work

  include 'example.inc'

end program work_queue
