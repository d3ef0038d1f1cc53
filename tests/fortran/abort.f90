! Rank 1 ends the job, by the call that is named; the others wait for what never comes.
program ends
  use fmpl
  implicit none
  character(8) :: how
  integer :: ier, rank, x(1)
  call get_command_argument(1, how)
  if (how == 'acp') call acp_init(ier)
  call fmpl_init(FMPL_NULL, FMPL_NULL, 1, ier)
  if (ier /= FMPL_SUCCESS) stop 2
  call fmpl_comm_rank(FMPL_COMM_WORLD, rank, ier)
  if (rank == 1 .and. how == 'acp') call acp_abort('the table is full')
  if (rank == 1) call fmpl_abort(41, ier)
  call fmpl_recv(x, 4, 1, 0, FMPL_COMM_WORLD, ier)
  do while (.true.)
    call fmpl_progress(ier)
  end do
end program ends
