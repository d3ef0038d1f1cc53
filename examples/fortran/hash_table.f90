! A hash table over all ranks' memory: every rank puts and gets on its own, by remote atomic operations; no rank serves another.
! Any number of ranks.
!
! A slot is two words, key and value, in the memory of the rank that the key's hash names. Who puts a key takes the first empty slot
! from there by compare-and-swap, and then owns that key's value.
!
!     gfortran PREFIX/include/fmpl.f90 hash_table.f90 -o hash_table $(pkg-config --libs fmpl)
!     fmpl run -n 4 ./hash_table
program hash_table
  use, intrinsic :: iso_c_binding
  use fmpl
  implicit none
  integer, parameter :: slots = 4096, keys = 200
  integer(c_int64_t), parameter :: empty = 0
  integer(c_int64_t), target, save :: own(2 * slots) = empty   ! this rank's part of the table
  integer(c_int64_t), allocatable :: parts(:)                  ! where everybody's part is
  integer(c_int64_t), pointer, volatile :: words(:)            ! this rank's starter memory
  integer(c_int64_t) :: key, starter, other, home, handle, n, ranks
  integer :: me, nranks, rank, ier
  type(c_ptr) :: address

  call acp_init(ier)
  call try(ier)
  call acp_rank(me, ier)
  call try(ier)
  call acp_procs(nranks, ier)
  call try(ier)
  ranks = nranks
  allocate (parts(0:nranks - 1))
  call acp_register_memory(own, int(16 * slots, c_size_t), 0, key, ier)
  call try(ier)
  call acp_query_starter_ga(me, starter, ier)
  call try(ier)
  call acp_query_address(starter, address, ier)
  call try(ier)
  call c_f_pointer(address, words, [2])
  ! Everybody writes its address into its starter memory and reads the others'; old values come there too.
  call acp_query_ga(key, own, other, ier)
  call try(ier)
  words(1) = other
  home = starter + 8
  call acp_sync(ier)
  call try(ier)
  do rank = 0, nranks - 1
    call acp_query_starter_ga(rank, other, ier)
    call try(ier)
    call acp_copy(home, other, 8_c_size_t, ACP_HANDLE_NULL, handle, ier)
    parts(rank) = completed()
  end do
  ! Every rank's own keys, and one that all put.
  do n = 0, keys - 1
    call put(1 + me + n * ranks, n * n + me)
  end do
  call put(huge(0_c_int64_t), int(me, c_int64_t))
  call acp_sync(ier)
  call try(ier)
  do n = 0, keys * ranks - 1
    if (get(1 + n) /= (n / ranks)**2 + mod(n, ranks)) call acp_abort('a value is wrong')
  end do
  n = get(huge(0_c_int64_t))
  if (n < 0 .or. n >= ranks) call acp_abort('a value is wrong')
  if (get(keys * ranks + 1) /= -1) call acp_abort('a value is wrong')
  print '(a,i0,a,i0,a,i0,a)', 'rank ', me, ': ', nranks, ' ranks put ', keys, ' keys each and found all'
  call acp_sync(ier)
  call try(ier)
  call acp_unregister_memory(key, ier)
  call try(ier)
  call acp_finalize(ier)
  call try(ier)

contains
  ! What was there when the operation just issued was done.
  function completed() result(old)
    integer(c_int64_t) :: old
    call try(ier)
    call acp_complete(handle, ier)
    call try(ier)
    old = words(2)
  end function completed
  ! The n-th slot at which a key may be.
  function place(key, n) result(at)
    integer(c_int64_t), intent(in) :: key, n
    integer(c_int64_t) :: at, slot
    slot = mod(mod(key, 1000003_c_int64_t) * 7919 + n, slots * ranks)
    at = parts(mod(slot, ranks)) + slot / ranks * 16
  end function place
  subroutine put(key, value)
    integer(c_int64_t), intent(in) :: key, value
    integer(c_int64_t) :: n, found
    do n = 0, slots * ranks - 1
      call acp_cas8(home, place(key, n), empty, key, ACP_HANDLE_NULL, handle, ier)
      found = completed()
      if (found /= empty .and. found /= key) cycle
      call acp_swap8(home, place(key, n) + 8, value, ACP_HANDLE_NULL, handle, ier)
      found = completed()
      return
    end do
    call acp_abort('the table is full')
  end subroutine put
  ! The value of a key, or -1.
  function get(key) result(value)
    integer(c_int64_t), intent(in) :: key
    integer(c_int64_t) :: value, n, found
    value = -1
    do n = 0, slots * ranks - 1
      call acp_add8(home, place(key, n), 0_c_int64_t, ACP_HANDLE_NULL, handle, ier)
      found = completed()
      if (found == empty) return
      if (found /= key) cycle
      call acp_add8(home, place(key, n) + 8, 0_c_int64_t, ACP_HANDLE_NULL, handle, ier)
      value = completed()
      return
    end do
  end function get
  subroutine try(ier)
    integer, intent(in) :: ier
    character(300) :: text
    integer :: ignored
    if (ier == FMPL_SUCCESS) return
    call fmpl_last_error(text, ignored)
    print '(a)', trim(text)
    stop 1
  end subroutine try
end program hash_table
