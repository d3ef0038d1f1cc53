! Every subroutine of the module for global memory.
program acp
  use, intrinsic :: iso_c_binding
  use fmpl
  implicit none
  integer :: me, procs, next, before, color, ier, flag
  integer(c_int64_t) :: key, ga, res, there, mine, h, far
  integer(c_int64_t), target, asynchronous, save :: table(1024), old(16)
  integer(c_int), target, asynchronous, save :: small(16)
  integer(c_int64_t), pointer, volatile :: starter(:)
  integer(c_int64_t) :: keys(2), small_ga
  type(c_ptr) :: address
  character(300) :: words

  table = 0
  old = -1
  small = -1
  call acp_sync(ier)
  if (ier /= FMPL_ERR_INIT) stop 1
  call acp_init(ier)
  call try(ier)
  call acp_rank(me, ier)
  call try(ier)
  call acp_procs(procs, ier)
  call try(ier)
  call acp_colors(color)
  call expect(color >= 1, 'colours')
  next = mod(me + 1, procs)
  before = mod(me + procs - 1, procs)

  call acp_register_memory(table, 8192_c_int64_t, 0, key, ier)
  call try(ier)
  call acp_register_memory(old, 128_c_int64_t, 1, keys(1), ier)
  call try(ier)
  call acp_register_memory(small, 64_c_int64_t, 0, keys(2), ier)
  call try(ier)
  call acp_query_ga(key, table, ga, ier)
  call try(ier)
  call acp_query_ga(keys(1), old, res, ier)
  call try(ier)
  call acp_query_ga(keys(2), small, small_ga, ier)
  call try(ier)
  call acp_query_color(res, color, ier)
  call expect(ier == 0 .and. color == 1, 'the colour')
  call acp_query_address(ga, address, ier)
  call try(ier)
  call expect(c_associated(address, c_loc(table)), 'the address')

  call acp_query_starter_ga(me, mine, ier)
  call try(ier)
  call acp_query_address(mine, address, ier)
  call try(ier)
  call c_f_pointer(address, starter, [1280])
  starter(1) = ga
  call acp_sync(ier)
  call try(ier)
  call acp_query_starter_ga(next, far, ier)
  call try(ier)
  call acp_copy(mine + 8, far, 8_c_int64_t, ACP_HANDLE_NULL, h, ier)
  call try(ier)
  call acp_complete(h, ier)
  call try(ier)
  there = starter(2)
  call acp_query_rank(there, flag, ier)
  call expect(ier == 0 .and. flag == next, 'the rank of an address')

  call acp_swap8(res, there, 40_c_int64_t, ACP_HANDLE_NULL, h, ier)
  call try(ier)
  call acp_add8(res + 8, there, 2_c_int64_t, (h), h, ier)
  call try(ier)
  call acp_xor8(res + 16, there, 3_c_int64_t, (h), h, ier)
  call try(ier)
  call acp_or8(res + 24, there, 64_c_int64_t, (h), h, ier)
  call try(ier)
  call acp_and8(res + 32, there, 72_c_int64_t, (h), h, ier)
  call try(ier)
  call acp_cas8(res + 40, there, 72_c_int64_t, 5_c_int64_t, (h), h, ier)
  call try(ier)
  call acp_cas8(res + 48, there, 72_c_int64_t, 6_c_int64_t, (h), h, ier)
  call try(ier)
  call acp_swap4(small_ga, there + 12, 40, (h), h, ier)
  call try(ier)
  call acp_add4(small_ga + 4, there + 12, 2, ACP_HANDLE_CONT, h, ier)
  call try(ier)
  call acp_xor4(small_ga + 8, there + 12, 3, ACP_HANDLE_ALL, h, ier)
  call try(ier)
  call acp_or4(small_ga + 12, there + 12, 64, (h), h, ier)
  call try(ier)
  call acp_and4(small_ga + 16, there + 12, 72, (h), h, ier)
  call try(ier)
  call acp_cas4(small_ga + 20, there + 12, 72, 5, (h), h, ier)
  call try(ier)
  call acp_cas4(small_ga + 24, there + 12, 72, 6, (h), h, ier)
  call try(ier)
  call acp_complete(ACP_HANDLE_ALL, ier)
  call try(ier)
  call acp_inquire(h, flag, ier)
  call expect(ier == 0 .and. flag == 0, 'all is over')
  call expect(all(old(1:7) == [0, 40, 42, 41, 105, 72, 5]), 'words of 8 bytes')
  call expect(all(small(1:7) == [0, 40, 42, 41, 105, 72, 5]), 'words of 4 bytes')
  call acp_sync(ier)
  call expect(table(1) == 5 .and. table(2) == ishft(5_c_int64_t, 32), 'the table')

  call acp_copy(there, ACP_GA_NULL, 8_c_int64_t, ACP_HANDLE_NULL, h, ier)
  call expect(ier == FMPL_ERR_ARGUMENT, 'the null address')
  call acp_copy(there, ga, -8_c_int64_t, ACP_HANDLE_NULL, h, ier)
  call expect(ier == FMPL_ERR_ARGUMENT, 'a negative size')
  call acp_errno(flag, ier)
  call expect(ier == FMPL_SUCCESS .and. flag == FMPL_ERR_ARGUMENT, 'its number')
  call acp_errno(flag, ier)
  call expect(flag == 0, 'its number, told once')
  call acp_last_error(words, ier)
  call expect(index(words, 'the size is negative') > 0, 'its words')
  call expect(iand(h, ACP_HANDLE_REFUSED) /= 0, 'a handle that says so')
  call acp_copy(res + 120, ga, 8_c_int64_t, (h), far, ier)
  call expect(ier == FMPL_ERR_ARGUMENT .and. iand(far, ACP_HANDLE_REFUSED) /= 0, 'what follows a refused one')
  call acp_add8(res + 120, ga, 1_c_int64_t, ACP_HANDLE_ALL, far, ier)
  call expect(ier == FMPL_ERR_ARGUMENT .and. iand(far, ACP_HANDLE_REFUSED) /= 0, 'what follows all')
  call acp_complete(ACP_HANDLE_ALL, ier)
  call expect(ier == FMPL_ERR_ARGUMENT, 'a wait says so')
  call acp_inquire(h, flag, ier)
  call expect(ier == FMPL_ERR_ARGUMENT, 'a look says so')
  call expect(old(16) == -1, 'nothing was moved')
  call acp_copy(res + 120, ga, 8_c_int64_t, ACP_HANDLE_ALL, h, ier)
  call try(ier)
  call acp_complete(h, ier)
  call try(ier)
  call acp_sync(ier)
  call acp_unregister_memory(key, ier)
  call try(ier)
  call acp_unregister_memory(key, ier)
  call expect(ier == FMPL_ERR_ARGUMENT, 'unregistered twice')
  call acp_reset(before, ier)
  call try(ier)
  call acp_rank(me, ier)
  call expect(me == before, 'the new rank')
  call acp_finalize(ier)
  call try(ier)

contains
  subroutine try(ier)
    integer, intent(in) :: ier
    character(300) :: text
    integer :: ignored
    if (ier == FMPL_SUCCESS) return
    call fmpl_last_error(text, ignored)
    print '(a,i0,2a)', 'rank ', me, ': ', trim(text)
    stop 1
  end subroutine try
  subroutine expect(so, what)
    logical, intent(in) :: so
    character(*), intent(in) :: what
    if (so) return
    print '(a,i0,2a)', 'rank ', me, ': not so: ', what
    stop 1
  end subroutine expect
end program acp
