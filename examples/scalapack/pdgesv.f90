! Solves A x = b with ScaLAPACK on a 2-d grid of processes, and checks the residual. Nothing here knows what carries the messages:
!
!   gfortran pdgesv.f90 -o pdgesv -lscalapack-openmpi -llapack -lblas
!   fmpl run -n 4 --preload libfmpl_blacs.so -- ./pdgesv 500 32
!
! docs/scalapack.md has the ways to link it. Arguments: order of A, block size, rows of the grid (default: the squarest).
program solve
  implicit none
  integer, parameter :: dp = kind(1d0)
  integer :: n, nb, me, procs, rows, columns, row, column, context, info, m_local, n_local, i
  integer :: desc_a(9), desc_b(9)
  integer, allocatable :: pivots(:)
  real(dp), allocatable :: a(:, :), factors(:, :), b(:), x(:)
  real(dp) :: anorm, xnorm, rnorm, residual, began, took, work(1)
  integer, external :: numroc
  real(dp), external :: pdlange, dwalltime00
  character(32) :: word

  n = 500; nb = 32; rows = 0
  if (command_argument_count() >= 1) then; call get_command_argument(1, word); read (word, *) n; end if
  if (command_argument_count() >= 2) then; call get_command_argument(2, word); read (word, *) nb; end if
  if (command_argument_count() >= 3) then; call get_command_argument(3, word); read (word, *) rows; end if

  call blacs_pinfo(me, procs)
  if (rows == 0) then
    rows = 1
    do i = 2, int(sqrt(real(procs)))
      if (mod(procs, i) == 0) rows = i
    end do
  end if
  columns = procs / rows
  call blacs_get(-1, 0, context)
  call blacs_gridinit(context, 'R', rows, columns)
  call blacs_gridinfo(context, rows, columns, row, column)
  if (row >= 0) then
    m_local = max(1, numroc(n, nb, row, 0, rows))
    n_local = max(1, numroc(n, nb, column, 0, columns))
    allocate (a(m_local, n_local), factors(m_local, n_local), b(m_local), x(m_local), pivots(m_local + nb))
    call descinit(desc_a, n, n, nb, nb, 0, 0, context, m_local, info)
    call descinit(desc_b, n, 1, nb, nb, 0, 0, context, m_local, info)
    call fill(a, row, column, 1)
    b = 0
    if (column == 0) call fill(b, row, 0, 7919)
    factors = a
    x = b

    call blacs_barrier(context, 'A')
    began = dwalltime00()
    call pdgesv(n, 1, factors, 1, 1, desc_a, pivots, x, 1, 1, desc_b, info)
    took = dwalltime00() - began
    if (info /= 0) then
      print '(a,i0)', 'pdgesv: info = ', info
      call blacs_abort(context, 1)
    end if

    ! |b - A x| / (|A| |x| n eps)
    anorm = pdlange('I', n, n, a, 1, 1, desc_a, factors)
    xnorm = pdlange('I', n, 1, x, 1, 1, desc_b, factors)
    call pdgemm('N', 'N', n, 1, n, -1d0, a, 1, 1, desc_a, x, 1, 1, desc_b, 1d0, b, 1, 1, desc_b)
    rnorm = pdlange('I', n, 1, b, 1, 1, desc_b, factors)
    residual = rnorm / (anorm * xnorm * n * epsilon(1d0))
    if (me == 0) then
      print '(a,i0,a,i0,a,i0,a,i0,a,f9.6,a,es9.2)', 'pdgesv: n ', n, ', blocks of ', nb, ', grid ', rows, ' x ', columns, ': ', &
        took, ' s, residual ', residual
      if (.not. residual < 16) print '(a)', 'the residual is too large'
    end if
    if (.not. residual < 16) call blacs_abort(context, 1)
    call blacs_gridexit(context)
  end if
  call blacs_exit(0)

contains

  ! The part of a pseudo-random matrix that process (row, column) has.
  subroutine fill(part, row, column, salt)
    real(dp), intent(out) :: part(m_local, *)
    integer, intent(in) :: row, column, salt
    integer :: i, j, gi, gj, width
    integer(8) :: h
    width = merge(numroc(n, nb, column, 0, columns), 1, salt == 1)
    do j = 1, width
      gj = ((j - 1) / nb * columns + column) * nb + mod(j - 1, nb)
      do i = 1, numroc(n, nb, row, 0, rows)
        gi = ((i - 1) / nb * rows + row) * nb + mod(i - 1, nb)
        h = mod(int(gi, 8) * 1103515245_8 + int(gj, 8) * 40503_8 * (gi + salt) + salt, 2147483647_8)
        h = mod(h * 16807_8, 2147483647_8)
        part(i, j) = real(h, dp) / 2147483647d0 - 0.5d0
      end do
    end do
  end subroutine
end program solve
