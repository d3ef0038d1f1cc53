! Every collective call of the module, and functions of the program.
module functions
  implicit none
contains
  ! Keeps the first of a and the last of b: it does not commute.
  subroutine join(a, b, n)
    integer, intent(in) :: n
    integer, intent(inout) :: a(2, n)
    integer, intent(in) :: b(2, n)
    a(2, :) = b(2, :)
  end subroutine join
end module functions

program collective
  use fmpl
  use functions
  implicit none
  integer, parameter :: n = 3000
  integer :: rank, ranks, ier, root, pair(2, n), i(n), k
  double precision :: d(n), work(n)
  complex(kind(1d0)) :: z(n)
  real :: s(n)

  call fmpl_init(FMPL_NULL, FMPL_NULL, 4, ier)
  call check(ier)
  call fmpl_comm_rank(FMPL_COMM_WORLD, rank, ier)
  call fmpl_comm_size(FMPL_COMM_WORLD, ranks, ier)
  call fmpl_func_register(join, 8, 0, ier)
  call check(ier)
  do root = 0, ranks - 1
    d = merge(1.5d0, -1d0, rank == root)
    call fmpl_barrier(FMPL_COMM_WORLD, ier)
    call check(ier)
    call fmpl_bcast(d, 8 * n, root, FMPL_COMM_WORLD, ier)
    call check(ier)
    if (any(abs(d - 1.5d0) > 0)) error stop 'bcast'
    call fmpl_bcast(d, 8_8 * n, root, FMPL_COMM_WORLD, ier)
    call check(ier)
    pair = rank
    call fmpl_reduce(pair, n, join, root, FMPL_COMM_WORLD, FMPL_NULL, ier)
    call check(ier)
    if (rank == root) then
      if (any(pair(1, :) /= 0) .or. any(pair(2, :) /= ranks - 1)) error stop 'reduce'
    else
      if (any(pair /= rank)) error stop 'reduce elsewhere'
    end if
  end do
  d = rank
  z = cmplx(rank, -rank, kind(1d0))
  s = real(rank)
  i = [(k * (rank + 1), k = 1, n)]
  call fmpl_allreduce(d, n, fmpl_dsum, FMPL_COMM_WORLD, work, ier)
  call check(ier)
  call fmpl_allreduce(z, n, fmpl_zmax, FMPL_COMM_WORLD, FMPL_NULL, ier)
  call check(ier)
  call fmpl_allreduce(s, n, fmpl_sminval, FMPL_COMM_WORLD, FMPL_NULL, ier)
  call check(ier)
  call fmpl_allreduce(i, n, fmpl_iamax, FMPL_COMM_WORLD, FMPL_NULL, ier)
  call check(ier)
  if (any(abs(d - dble(ranks * (ranks - 1) / 2)) > 0)) error stop 'dsum'
  if (any(abs(z - cmplx(ranks - 1, -(ranks - 1), kind(1d0))) > 0)) error stop 'zmax'
  if (any(abs(s) > 0)) error stop 'sminval'
  if (any(i /= [(k * ranks, k = 1, n)])) error stop 'iamax'
  call fmpl_isum(i(1), i(2), 1)
  call fmpl_allreduce(d, n, join, FMPL_COMM_WORLD, FMPL_NULL, ier)
  call check(ier)
  call fmpl_reduce(d, -1, fmpl_dsum, 0, FMPL_COMM_WORLD, FMPL_NULL, ier)
  if (ier /= FMPL_ERR_ARGUMENT) error stop 'negative count'
  call blocks()
  call uneven()
  call fmpl_finalize(ier)
  call check(ier)
contains
  ! Blocks of n integers of each rank for each: moved, reduced, and calls that do not wait.
  subroutine blocks()
    integer, allocatable :: all(:, :), of_all(:, :), of_all2(:, :)
    integer :: mine(n), r, k, done
    allocate (all(n, 0:ranks - 1), of_all(n, 0:ranks - 1), of_all2(n, 0:ranks - 1))
    do r = 0, ranks - 1
      all(:, r) = [(100 * rank + r + k, k = 1, n)]
    end do
    call fmpl_alltoall(all, 4 * n, of_all, FMPL_COMM_WORLD, ier)
    call check(ier)
    do r = 0, ranks - 1
      if (any(of_all(:, r) /= [(100 * r + rank + k, k = 1, n)])) error stop 'alltoall'
    end do
    call fmpl_alltoall(all, 4_8 * n, of_all, FMPL_COMM_WORLD, ier)
    call check(ier)
    call fmpl_gather(all, 4 * n, of_all, 0, FMPL_COMM_WORLD, ier)
    call check(ier)
    call fmpl_gather(all, 4_8 * n, of_all, 0, FMPL_COMM_WORLD, ier)
    call check(ier)
    if (rank == 0) then
      if (any(of_all(1, :) /= [(100 * r + 1, r = 0, ranks - 1)])) error stop 'gather'
    end if
    call fmpl_allgather(all, 4 * n, of_all, FMPL_COMM_WORLD, ier)
    call check(ier)
    call fmpl_allgather(all, 4_8 * n, of_all, FMPL_COMM_WORLD, ier)
    call check(ier)
    if (any(of_all(1, :) /= [(100 * r + 1, r = 0, ranks - 1)])) error stop 'allgather'
    call fmpl_scatter(all, 4 * n, mine, ranks - 1, FMPL_COMM_WORLD, ier)
    call check(ier)
    call fmpl_scatter(all, 4_8 * n, mine, ranks - 1, FMPL_COMM_WORLD, ier)
    call check(ier)
    if (any(mine /= [(100 * (ranks - 1) + rank + k, k = 1, n)])) error stop 'scatter'
    call fmpl_reduce_scatter(all, mine, n, fmpl_isum, FMPL_COMM_WORLD, ier)
    call check(ier)
    if (any(mine /= [(50 * ranks * (ranks - 1) + ranks * (rank + k), k = 1, n)])) error stop 'reduce_scatter'
    mine = rank
    call fmpl_scan(mine, n, fmpl_isum, FMPL_COMM_WORLD, ier)
    call check(ier)
    if (any(mine /= rank * (rank + 1) / 2)) error stop 'scan'
    mine = rank + 1
    call fmpl_mcast_reduce(mine, n, fmpl_isum, [2_8**ranks - 1], 0, FMPL_COMM_WORLD, ier)
    call check(ier)
    if (any(mine /= merge(ranks * (ranks + 1) / 2, rank + 1, rank == 0))) error stop 'mcast_reduce'
    call fmpl_mcast_alltoall(all, 4 * n, of_all, [2_8**ranks - 1], FMPL_COMM_WORLD, ier)
    call check(ier)
    call fmpl_alltoall(all, 4 * n, of_all2, FMPL_COMM_WORLD, ier)
    call check(ier)
    if (any(of_all /= of_all2)) error stop 'mcast_alltoall'
    call fmpl_ibarrier(FMPL_COMM_WORLD, ier)
    call check(ier)
    call fmpl_ibarrier_wait(FMPL_COMM_WORLD, ier)
    call check(ier)
    call fmpl_ibarrier_test(FMPL_COMM_WORLD, done, ier)
    if (ier /= FMPL_ERR_REQUEST) error stop 'no ibarrier'
    mine = rank
    call fmpl_ibcast(mine, 4 * n, ranks - 1, FMPL_COMM_WORLD, ier)
    call check(ier)
    done = 0
    do while (done == 0)
      call fmpl_ibcast_test(FMPL_COMM_WORLD, done, ier)
      call check(ier)
    end do
    if (any(mine /= ranks - 1)) error stop 'ibcast'
    call fmpl_ibcast(mine, 4_8 * n, 0, FMPL_COMM_WORLD, ier)
    call check(ier)
    call fmpl_ibcast_wait(FMPL_COMM_WORLD, ier)
    call check(ier)
    call fmpl_iallreduce(mine, n, fmpl_isum, FMPL_COMM_WORLD, FMPL_NULL, ier)
    call check(ier)
    call fmpl_iallreduce_wait(FMPL_COMM_WORLD, ier)
    call check(ier)
    if (any(mine /= ranks * (ranks - 1))) error stop 'iallreduce'
    call fmpl_iallreduce(mine, n, fmpl_imax, FMPL_COMM_WORLD, FMPL_NULL, ier)
    call check(ier)
    done = 0
    do while (done == 0)
      call fmpl_iallreduce_test(FMPL_COMM_WORLD, done, ier)
      call check(ier)
    end do
    call begun()
    call grids()
  end subroutine blocks
  ! A ring of all ranks.
  subroutine grids()
    integer :: ring, at(1), peer, before, behind, two(2)
    integer :: dims(1), periods(1)
    dims = ranks
    periods = 1
    call fmpl_cart_create(FMPL_COMM_WORLD, 1, dims, periods, ring, ier)
    call check(ier)
    call fmpl_cart_coords(ring, rank, at, ier)
    call check(ier)
    if (at(1) /= rank) error stop 'cart_coords'
    at = -1
    call fmpl_cart_rank(ring, at, peer, ier)
    call check(ier)
    if (peer /= ranks - 1) error stop 'cart_rank'
    call fmpl_cart_shift(ring, 0, 1, before, behind, ier)
    call check(ier)
    if (behind /= mod(rank + 1, ranks)) error stop 'cart_shift'
    two = -1
    call fmpl_neighbour_allgather(rank, 4, two, ring, ier)
    call check(ier)
    if (any(two /= [before, behind])) error stop 'neighbour_allgather'
    call fmpl_neighbour_alltoall([2 * rank, 2 * rank + 1], 4_8, two, ring, ier)
    call check(ier)
    if (any(two /= [2 * before + 1, 2 * behind])) error stop 'neighbour_alltoall'
    call fmpl_comm_free(ring, ier)
    call check(ier)
  end subroutine grids
  ! Calls that do not wait, one at a time and several.
  subroutine begun()
    integer(8) :: ticket(9)
    integer :: sums(8), codes(8), two(2), k, over
    integer, allocatable :: all(:), got(:)
    type(fmpl_request) :: r(8)
    allocate (all(2 * ranks), got(2 * ranks))
    two = [rank, 1]
    call fmpl_ireduce(two, 2, fmpl_isum, 0, FMPL_COMM_WORLD, FMPL_NULL, ier)
    call check(ier)
    call fmpl_ireduce_wait(FMPL_COMM_WORLD, ier)
    call check(ier)
    if (rank == 0 .and. two(2) /= ranks) error stop 'ireduce'
    two = [rank, 1]
    call fmpl_igather(two, 8, all, 0, FMPL_COMM_WORLD, ier)
    call check(ier)
    over = 0
    do while (over == 0)
      call fmpl_igather_test(FMPL_COMM_WORLD, over, ier)
      call check(ier)
    end do
    if (rank == 0 .and. any(all(1::2) /= [(k, k = 0, ranks - 1)])) error stop 'igather'
    two = -1
    call fmpl_iscatter(all, 8, two, 0, FMPL_COMM_WORLD, ier)
    call check(ier)
    call fmpl_iscatter_wait(FMPL_COMM_WORLD, ier)
    call check(ier)
    if (any(two /= [rank, 1])) error stop 'iscatter'
    call fmpl_iallgather(two, 8_8, all, FMPL_COMM_WORLD, ier)
    call check(ier)
    call fmpl_iallgather_wait(FMPL_COMM_WORLD, ier)
    call check(ier)
    if (any(all(1::2) /= [(k, k = 0, ranks - 1)])) error stop 'iallgather'
    call fmpl_ialltoall(all, 8, got, FMPL_COMM_WORLD, ier)
    call check(ier)
    call fmpl_ialltoall_wait(FMPL_COMM_WORLD, ier)
    call check(ier)
    if (any(got(1::2) /= rank)) error stop 'ialltoall'
    call fmpl_ireduce_test(FMPL_COMM_WORLD, over, ier)
    if (ier /= FMPL_ERR_REQUEST) error stop 'no ireduce'
    call fmpl_igather_wait(FMPL_COMM_WORLD, ier)
    if (ier /= FMPL_ERR_REQUEST) error stop 'no igather'
    call fmpl_iscatter_test(FMPL_COMM_WORLD, over, ier)
    if (ier /= FMPL_ERR_REQUEST) error stop 'no iscatter'
    call fmpl_iallgather_test(FMPL_COMM_WORLD, over, ier)
    if (ier /= FMPL_ERR_REQUEST) error stop 'no iallgather'
    call fmpl_ialltoall_test(FMPL_COMM_WORLD, over, ier)
    if (ier /= FMPL_ERR_REQUEST) error stop 'no ialltoall'
    do k = 1, 8
      sums(k) = rank + k
      call fmpl_iallreduce_n(sums(k), 1, fmpl_isum, FMPL_COMM_WORLD, ticket(k), ier)
      call check(ier)
      r(k) = fmpl_request(kind=FMPL_REQUEST_ALLREDUCE, ticket=ticket(k))
    end do
    call fmpl_barrier(FMPL_COMM_WORLD, ier)
    call check(ier)
    call fmpl_coll_wait(ticket(6), ier)
    call check(ier)
    r(6)%kind = FMPL_REQUEST_NONE
    call fmpl_waitall(r, 8, codes, ier)
    call check(ier)
    if (any(sums /= [(ranks * (ranks - 1) / 2 + k * ranks, k = 1, 8)])) error stop 'iallreduce_n'
    two = [rank, 0]
    if (rank == 0) two(2) = 7
    call fmpl_ibarrier_n(FMPL_COMM_WORLD, ticket(1), ier)
    call check(ier)
    call fmpl_ibcast_n(two(2), 4, 0, FMPL_COMM_WORLD, ticket(2), ier)
    call check(ier)
    call fmpl_ireduce_n(sums, 8, fmpl_isum, 0, FMPL_COMM_WORLD, ticket(3), ier)
    call check(ier)
    call fmpl_igather_n(rank, 4_8, got, 0, FMPL_COMM_WORLD, ticket(4), ier)
    call check(ier)
    call fmpl_iallgather_n(rank, 4, all, FMPL_COMM_WORLD, ticket(5), ier)
    call check(ier)
    call fmpl_coll_wait(ticket(5), ier)
    call check(ier)
    if (any(all(1:ranks) /= [(k, k = 0, ranks - 1)])) error stop 'iallgather_n'
    call fmpl_iscatter_n(all, 4, two(1), 0, FMPL_COMM_WORLD, ticket(6), ier)
    call check(ier)
    call fmpl_ialltoall_n(all, 4, all(ranks + 1:), FMPL_COMM_WORLD, ticket(7), ier)
    call check(ier)
    do k = 7, 1, -1
      if (k == 5) cycle
      over = 0
      do while (over == 0)
        call fmpl_coll_test(ticket(k), over, ier)
        call check(ier)
      end do
    end do
    if (any(two /= [rank, 7]) .or. any(all(ranks + 1:) /= rank)) error stop 'with tickets'
    call fmpl_coll_wait(ticket(1), ier)
    if (ier /= FMPL_ERR_REQUEST) error stop 'no ticket'
  end subroutine begun
  ! Rank r gives r + 1 integers, or as many to rank q as q + 1.
  subroutine uneven()
    integer(8), allocatable :: sizes(:), places(:), ours(:), there(:)
    integer, allocatable :: all(:), got(:), own(:)
    integer :: q, k, total
    total = ranks * (ranks + 1) / 2
    allocate (sizes(ranks), places(ranks), ours(ranks), there(ranks), own(rank + 1))
    sizes = [(4_8 * (q + 1), q = 0, ranks - 1)]
    places = [(2_8 * q * (q + 1), q = 0, ranks - 1)]
    ours = [(4_8 * (rank + 1), q = 0, ranks - 1)]
    there = [(4_8 * (rank + 1) * q, q = 0, ranks - 1)]
    own = [(100 * rank + k, k = 0, rank)]
    allocate (all(total), got(max(total, ranks * (rank + 1))))
    got = -1
    call fmpl_allgatherv(own, 4 * (rank + 1), got, sizes, places, FMPL_COMM_WORLD, ier)
    call check(ier)
    call fmpl_gatherv(own, 4_8 * (rank + 1), all, sizes, places, 0, FMPL_COMM_WORLD, ier)
    call check(ier)
    do q = 0, ranks - 1
      do k = 0, q
        if (got(q * (q + 1) / 2 + k + 1) /= 100 * q + k) error stop 'allgatherv'
        if (rank == 0) then
          if (all(q * (q + 1) / 2 + k + 1) /= 100 * q + k) error stop 'gatherv'
        end if
      end do
    end do
    own = -1
    call fmpl_scatterv(got, sizes, places, own, 4 * (rank + 1), ranks - 1, FMPL_COMM_WORLD, ier)
    call check(ier)
    if (any(own /= [(100 * rank + k, k = 0, rank)])) error stop 'scatterv'
    all = [(1000 * rank + k, k = 1, total)]
    call fmpl_alltoallv(all, sizes, places, got, ours, there, FMPL_COMM_WORLD, ier)
    call check(ier)
    do q = 0, ranks - 1
      do k = 0, rank
        if (got(q * (rank + 1) + k + 1) /= 1000 * q + rank * (rank + 1) / 2 + k + 1) error stop 'alltoallv'
      end do
    end do
    got = -1
    call fmpl_alltoallv(all, sizes, [FMPL_NULL], got, ours, [FMPL_NULL], FMPL_COMM_WORLD, ier)
    call check(ier)
    if (got(ranks * (rank + 1)) /= 1000 * (ranks - 1) + rank * (rank + 1) / 2 + rank + 1) error stop 'alltoallv, packed'
    own(1) = rank + 1
    call fmpl_exscan(own, 1, fmpl_isum, FMPL_COMM_WORLD, ier)
    call check(ier)
    if (own(1) /= merge(1, rank * (rank + 1) / 2, rank == 0)) error stop 'exscan'
  end subroutine uneven
  subroutine check(code)
    integer, intent(in) :: code
    character(len=200) :: text
    integer :: k
    if (code /= FMPL_SUCCESS) then
      call fmpl_last_error(text, k)
      print '(a)', trim(text)
      error stop 1
    end if
  end subroutine check
end program collective
