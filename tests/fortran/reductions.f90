! The predefined functions on the types that Fortran has, in every call that takes one, beside the same in Fortran. What is the same for all
! kinds of a type is in files that are included once for each: reductions_integer.f90i, reductions_real.f90i.
module calls
  use, intrinsic :: iso_fortran_env, only: int8
  use fmpl
  implicit none
  integer, parameter :: n = 40
  integer :: rank, ranks
contains
  ! given(:, r) has the bytes of rank r's vector, until(:, r) those of what ranks 0 to r are together. Of an element's bytes some are
  ! used.
  subroutine play(name, f, given, until, used)
    character(*), intent(in) :: name
    procedure(fmpl_reduction) :: f
    integer(int8), intent(in) :: given(:, 0:), until(:, 0:)
    logical, intent(in) :: used(:)
    integer(int8) :: v(size(given, 1)), blocks(size(given, 1), 0:ranks - 1)
    integer :: ier, r
    v = given(:, rank)
    call fmpl_reduce(v, n, f, ranks - 1, FMPL_COMM_WORLD, FMPL_NULL, ier)
    call same('reduce', v, merge(until(:, rank), given(:, rank), rank == ranks - 1))
    v = given(:, rank)
    call fmpl_allreduce(v, n, f, FMPL_COMM_WORLD, FMPL_NULL, ier)
    call same('allreduce', v, until(:, ranks - 1))
    v = given(:, rank)
    call fmpl_iallreduce(v, n, f, FMPL_COMM_WORLD, FMPL_NULL, ier)
    if (ier == FMPL_SUCCESS) call fmpl_iallreduce_wait(FMPL_COMM_WORLD, ier)
    call same('iallreduce', v, until(:, ranks - 1))
    do r = 0, ranks - 1
      blocks(:, r) = given(:, rank)
    end do
    v = 0
    call fmpl_reduce_scatter(blocks, v, n, f, FMPL_COMM_WORLD, ier)
    call same('reduce_scatter', v, until(:, ranks - 1))
    v = given(:, rank)
    call fmpl_scan(v, n, f, FMPL_COMM_WORLD, ier)
    call same('scan', v, until(:, rank))
    v = given(:, rank)
    call fmpl_exscan(v, n, f, FMPL_COMM_WORLD, ier)
    call same('exscan', v, until(:, max(rank - 1, 0)))
    call fmpl_allreduce(v, 0, f, FMPL_COMM_WORLD, FMPL_NULL, ier)
    call same('allreduce of nothing', v, until(:, max(rank - 1, 0)))
    if (ranks > 1) then
      v = given(:, 0)
      call f(v, given(:, 1), n)
      call same('called', v, until(:, 1))
    end if
  contains
    subroutine same(call, got, want)
      character(*), intent(in) :: call
      integer(int8), intent(in) :: got(:), want(:)
      logical :: all_used(size(got))
      integer :: k
      all_used = [(used(mod(k - 1, size(used)) + 1), k = 1, size(got))]
      if (ier /= FMPL_SUCCESS .or. any(got /= want .and. all_used)) then
        print *, 'rank', rank, 'of', ranks, ': ', call, ' by ', name, ', code', ier
        error stop 'another result'
      end if
    end subroutine same
  end subroutine play
end module calls

module of_int8
  use, intrinsic :: iso_c_binding, only: k => c_int8_t
  include 'reductions_integer.f90i'
end module of_int8

module of_int16
  use, intrinsic :: iso_c_binding, only: k => c_int16_t
  include 'reductions_integer.f90i'
end module of_int16

module of_int32
  use, intrinsic :: iso_c_binding, only: k => c_int32_t
  include 'reductions_integer.f90i'
end module of_int32

module of_int64
  use, intrinsic :: iso_c_binding, only: k => c_int64_t
  include 'reductions_integer.f90i'
end module of_int64

module of_real
  use, intrinsic :: iso_c_binding, only: k => c_float
  include 'reductions_real.f90i'
end module of_real

module of_double
  use, intrinsic :: iso_c_binding, only: k => c_double
  include 'reductions_real.f90i'
end module of_double

module of_long_double
  use, intrinsic :: iso_c_binding, only: k => c_long_double
  include 'reductions_real.f90i'
end module of_long_double

program reductions
  use, intrinsic :: iso_c_binding, only: c_bool, c_long_double
  use, intrinsic :: iso_fortran_env, only: int8, int16
  use calls
  use fmpl
  use of_int8, only: i8 => check, i8_located => located
  use of_int16, only: i16 => check, i16_located => located
  use of_int32, only: i32 => check, i32_located => located
  use of_int64, only: i64 => check, i64_located => located
  use of_real, only: s => check, s_located => located, c => check_complex
  use of_double, only: d => check, d_located => located, z => check_complex
  use of_long_double, only: f80 => check, f80_located => located
  implicit none
  integer :: ier
  call fmpl_init(FMPL_NULL, FMPL_NULL, 1, ier)
  if (ier /= FMPL_SUCCESS) error stop 'init'
  call fmpl_comm_rank(FMPL_COMM_WORLD, rank, ier)
  call fmpl_comm_size(FMPL_COMM_WORLD, ranks, ier)

  call i8('sum', fmpl_i8sum)
  call i8('prod', fmpl_i8prod)
  call i8('maxval', fmpl_i8maxval)
  call i8('minval', fmpl_i8minval)
  call i8('land', fmpl_i8land)
  call i8('lor', fmpl_i8lor)
  call i8('lxor', fmpl_i8lxor)
  call i8('band', fmpl_i8band)
  call i8('bor', fmpl_i8bor)
  call i8('bxor', fmpl_i8bxor)
  call i8_located('maxloc', fmpl_i8maxloc)
  call i8_located('minloc', fmpl_i8minloc)
  call i16('sum', fmpl_i16sum)
  call i16('prod', fmpl_i16prod)
  call i16('maxval', fmpl_i16maxval)
  call i16('minval', fmpl_i16minval)
  call i16('land', fmpl_i16land)
  call i16('lor', fmpl_i16lor)
  call i16('lxor', fmpl_i16lxor)
  call i16('band', fmpl_i16band)
  call i16('bor', fmpl_i16bor)
  call i16('bxor', fmpl_i16bxor)
  call i16_located('maxloc', fmpl_i16maxloc)
  call i16_located('minloc', fmpl_i16minloc)
  call i32('sum', fmpl_isum)
  call i32('prod', fmpl_iprod)
  call i32('maxval', fmpl_imaxval)
  call i32('minval', fmpl_iminval)
  call i32('amax', fmpl_iamax)
  call i32('amin', fmpl_iamin)
  call i32('land', fmpl_iland)
  call i32('lor', fmpl_ilor)
  call i32('lxor', fmpl_ilxor)
  call i32('band', fmpl_iband)
  call i32('bor', fmpl_ibor)
  call i32('bxor', fmpl_ibxor)
  call i32_located('maxloc', fmpl_imaxloc)
  call i32_located('minloc', fmpl_iminloc)
  call i64('sum', fmpl_i64sum)
  call i64('prod', fmpl_i64prod)
  call i64('maxval', fmpl_i64maxval)
  call i64('minval', fmpl_i64minval)
  call i64('land', fmpl_i64land)
  call i64('lor', fmpl_i64lor)
  call i64('lxor', fmpl_i64lxor)
  call i64('band', fmpl_i64band)
  call i64('bor', fmpl_i64bor)
  call i64('bxor', fmpl_i64bxor)
  call i64_located('maxloc', fmpl_i64maxloc)
  call i64_located('minloc', fmpl_i64minloc)
  call s('sum', fmpl_ssum)
  call s('prod', fmpl_sprod)
  call s('maxval', fmpl_smaxval)
  call s('minval', fmpl_sminval)
  call s('amax', fmpl_samax)
  call s('amin', fmpl_samin)
  call s_located('maxloc', fmpl_smaxloc)
  call s_located('minloc', fmpl_sminloc)
  call d('sum', fmpl_dsum)
  call d('prod', fmpl_dprod)
  call d('maxval', fmpl_dmaxval)
  call d('minval', fmpl_dminval)
  call d('amax', fmpl_damax)
  call d('amin', fmpl_damin)
  call d_located('maxloc', fmpl_dmaxloc)
  call d_located('minloc', fmpl_dminloc)
  call c('sum', fmpl_csum)
  call c('prod', fmpl_cprod)
  call z('sum', fmpl_zsum)
  call z('prod', fmpl_zprod)
  ! Where long double is that of the x87.
  if (digits(1._c_long_double) == 64) then
    call f80('sum', fmpl_f80sum)
    call f80('prod', fmpl_f80prod)
    call f80('maxval', fmpl_f80maxval)
    call f80('minval', fmpl_f80minval)
    call f80_located('maxloc', fmpl_f80maxloc)
    call f80_located('minloc', fmpl_f80minloc)
  end if
  call logicals('land', fmpl_b8land)
  call logicals('lor', fmpl_b8lor)
  call logicals('lxor', fmpl_b8lxor)
  call shorts('f16', fmpl_f16sum)
  call shorts('bf16', fmpl_bf16sum)
  call fmpl_finalize(ier)
  if (ier /= FMPL_SUCCESS) error stop 'finalize'
contains
  subroutine logicals(name, f)
    character(*), intent(in) :: name
    procedure(fmpl_reduction) :: f
    logical(c_bool) :: left(n), right(n)
    integer(int8), dimension(n, 0:ranks - 1) :: given, until
    integer :: r, j
    do r = 0, ranks - 1
      right = [(logical(mod(j * 7 + r * 5, 3 + mod(j, 4)) > 0, c_bool), j = 1, n)]
      if (r == 0) then
        left = right
      else
        select case (name)
        case ('land')
          left = left .and. right
        case ('lor')
          left = left .or. right
        case default
          left = left .neqv. right
        end select
      end if
      given(:, r) = transfer(right, given(:, r))
      until(:, r) = transfer(left, until(:, r))
    end do
    call play(name, f, given, until, [.true.])
  end subroutine logicals

  ! Numbers of 16 bits, as bits: 1 of each rank.
  subroutine shorts(name, f)
    character(*), intent(in) :: name
    procedure(fmpl_reduction) :: f
    integer(int16) :: left(n), right(n)
    integer(int8), dimension(2 * n, 0:ranks - 1) :: given, until
    integer(int16) :: numbers(8)
    integer :: r
    ! 1 to 8
    numbers = [15360_int16, 16384_int16, 16896_int16, 17408_int16, 17664_int16, 17920_int16, 18176_int16, 18432_int16]
    if (name == 'bf16') numbers = &
      [16256_int16, 16384_int16, 16448_int16, 16512_int16, 16544_int16, 16576_int16, 16608_int16, 16640_int16]
    right = numbers(1)
    do r = 0, ranks - 1
      left = numbers(r + 1)
      given(:, r) = transfer(right, given(:, r))
      until(:, r) = transfer(left, until(:, r))
    end do
    call play(name, f, given, until, [.true.])
  end subroutine shorts
end program reductions
