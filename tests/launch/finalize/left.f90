! A program that looks at no return code: rank 0 sends a message that nobody receives.
program left
  use fmpl
  implicit none
  integer :: rank, ier, mine = 1
  call fmpl_init(FMPL_NULL, FMPL_NULL, 2, ier)
  call fmpl_comm_rank(FMPL_COMM_WORLD, rank, ier)
  if (rank == 0) call fmpl_send(mine, 4, 1, 1, FMPL_COMM_WORLD, ier)
  call fmpl_finalize(ier)
  write (*, '(a,i0,a)', advance='no') 'rank ', rank, ' goes on, at the end'
end program left
