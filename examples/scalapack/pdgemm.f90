! Multiplies two matrices with PBLAS, and checks the product by a vector: C v = A (B v).
!
!   gfortran pdgemm.f90 -o pdgemm -lscalapack-openmpi -llapack -lblas
!   fmpl run -n 4 --preload libfmpl_blacs.so -- ./pdgemm 600
program multiply
  implicit none
  integer, parameter :: dp = kind(1d0), nb = 48
  integer :: n, me, procs, rows, columns, row, column, context, info, m_local, n_local, i
  integer :: desc(9), desc_v(9)
  real(dp), allocatable :: a(:, :), b(:, :), c(:, :), v(:), bv(:), difference(:), work(:)
  real(dp) :: began, took, error, size
  integer, external :: numroc
  real(dp), external :: pdlange, dwalltime00
  character(32) :: word

  n = 600
  if (command_argument_count() >= 1) then; call get_command_argument(1, word); read (word, *) n; end if
  call blacs_pinfo(me, procs)
  rows = 1
  do i = 2, int(sqrt(real(procs)))
    if (mod(procs, i) == 0) rows = i
  end do
  columns = procs / rows
  call blacs_get(-1, 0, context)
  call blacs_gridinit(context, 'C', rows, columns)
  call blacs_gridinfo(context, rows, columns, row, column)
  m_local = max(1, numroc(n, nb, row, 0, rows))
  n_local = max(1, numroc(n, nb, column, 0, columns))
  allocate (a(m_local, n_local), b(m_local, n_local), c(m_local, n_local), v(m_local), bv(m_local), difference(m_local), work(n))
  call descinit(desc, n, n, nb, nb, 0, 0, context, m_local, info)
  call descinit(desc_v, n, 1, nb, nb, 0, 0, context, m_local, info)
  ! Every process fills what it has with numbers of its own.
  call random_init(.true., .false.)
  do i = 0, me
    call random_number(a); call random_number(b); call random_number(v)
  end do

  call blacs_barrier(context, 'A')
  began = dwalltime00()
  call pdgemm('N', 'N', n, n, n, 1d0, a, 1, 1, desc, b, 1, 1, desc, 0d0, c, 1, 1, desc)
  took = dwalltime00() - began

  call pdgemm('N', 'N', n, 1, n, 1d0, b, 1, 1, desc, v, 1, 1, desc_v, 0d0, bv, 1, 1, desc_v)
  call pdgemm('N', 'N', n, 1, n, 1d0, c, 1, 1, desc, v, 1, 1, desc_v, 0d0, difference, 1, 1, desc_v)
  size = pdlange('I', n, 1, difference, 1, 1, desc_v, work)
  call pdgemm('N', 'N', n, 1, n, -1d0, a, 1, 1, desc, bv, 1, 1, desc_v, 1d0, difference, 1, 1, desc_v)
  error = pdlange('I', n, 1, difference, 1, 1, desc_v, work) / (size * n * epsilon(1d0))
  if (me == 0) print '(a,i0,a,i0,a,i0,a,f9.6,a,f7.2,a,es9.2)', 'pdgemm: n ', n, ', grid ', rows, ' x ', columns, ': ', took, &
    ' s, ', 2d-9 * real(n, dp)**3 / took, ' Gflop/s, error ', error
  if (.not. error < 16) call blacs_abort(context, 1)
  call blacs_gridexit(context)
  call blacs_exit(0)
end program multiply
