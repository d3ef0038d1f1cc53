"""Messages of several buffers, multicasts and loans that are not waited for, collective calls that do not wait, grids, counters."""

import asyncio
import re

import numpy as np
import pytest
from jobs import ROOT, ranks
from test_messages import fails

import fmpl
from fmpl import Code, Counter


def around(world):
    return (world.rank + 1) % world.size, (world.rank - 1) % world.size


@ranks(1, 2, 3)
def test_lists(job):
    world = job.world
    right, left = around(world)
    parts = [np.arange(3.0) + world.rank, b"four", bytearray(2)]
    numbers, word, rest = np.zeros(3), bytearray(4), bytearray(10)
    got = world.irecv_list([numbers, word, rest], left)
    world.send_list(parts, right)
    came = got.wait()
    assert came.nbytes == came.len == 30 and numbers[2] == 2 + left and word == b"four"
    numbers[:] = 0
    sending = world.isend_list([numbers[:1] + 7, numbers[:2] + 8], right, 1)
    first, second = np.zeros(2), np.zeros(3)
    came = world.recv_list([first, second], left, 1)
    sending.wait()
    # Elements where all buffers have such of the same size.
    assert came.len == 3 and list(first) == [7, 8] and list(second) == [8, 0, 0]
    fails(Code.TRUNCATE, lambda: (world.isend_list([b"123"], right, 2), world.recv_list([bytearray(1), bytearray(1)], left, 2)))
    fails(Code.ARGUMENT, world.send_list, [np.zeros((4, 4))[:, 1]], right)
    with pytest.raises((TypeError, BufferError)):
        world.recv_list([b"constant"], left)


@ranks(1, 2, 4)
def test_multicasts_that_are_not_waited_for(job):
    world = job.world
    everybody, last = range(world.size), world.size - 1
    big = np.full(10000, world.rank)
    got = np.empty_like(big)
    coming = world.mcast_irecv(got)
    fails(Code.BUSY, world.mcast_recv, got)
    sent = world.imcast(big, everybody) if world.rank == 0 else None
    came = coming.wait()
    assert came.source == 0 and came.len == len(got) and (got == 0).all()
    if sent:
        assert sent.wait() is None
    # Withdrawn: the next one gets it.
    withdrawn = world.mcast_irecv(got)
    assert withdrawn.cancel() and withdrawn.done
    coming = world.mcast_irecv(got)
    sent = world.imcast(big, everybody) if world.rank == last else None
    while not coming.test():
        job.progress()
    if sent:
        sent.wait()
    assert coming.received.source == last and (got == last).all()
    world.barrier()
    if world.rank == 0:
        world.mcast(b"to all", everybody)
    word = bytearray(10)
    assert world.mcast_recv(word).nbytes == 6 and word[:6] == b"to all"
    fails(Code.RANK, world.imcast, big, [world.size])
    # A loan for all of them.
    if world.rank == 0:
        loan = job.loan(1000)
        with loan as view:
            view[:] = bytes([7]) * 1000
        world.mcast_loan(loan, everybody, 5)
    with world.irecv_loan(0, 5).wait() as view:
        assert bytes(view) == bytes([7]) * 1000
    coming = world.irecv_loan_any(5)
    world.send_any(b"whoever", (world.rank + 1) % world.size, 5)
    loan = coming.wait()
    assert bytes(loan) == b"whoever" and loan.source == (world.rank - 1) % world.size
    world.recv_any_limit(1, 5)
    world.recv_any_limit(0, 5)
    fails(Code.ARGUMENT, world.recv_any_limit, -1)


@ranks(2, 3)
def test_loans_that_are_not_waited_for(job):
    world = job.world
    right, left = around(world)
    coming = world.irecv_loan(left, 3)
    assert coming.test() is None
    world.barrier()
    world.send(np.full(100, world.rank), right, 3)
    while (loan := coming.test()) is None:
        job.progress()
    assert loan.source == left and (np.frombuffer(loan, int) == left).all()
    fails(Code.REQUEST, coming.wait)
    world.barrier()
    coming = world.irecv_loan(left, 3)
    assert coming.cancel() and not coming.cancel()
    # One that is let go is withdrawn, and the index is free.
    world.irecv_loan(left, 3)
    world.irecv_loan_any(4)
    world.barrier()
    world.send(b"x", right, 3)
    assert world.recv_bytes(left, 3) == b"x"
    coming = world.irecv_loan(left, 3)
    fails(Code.BUSY, world.irecv, bytearray(1), left, 3)
    world.send(b"y", right, 3)
    assert bytes(coming.wait()) == b"y"


@ranks(1, 2, 3, 4)
def test_collective_calls_that_do_not_wait(job):
    world = job.world
    size, rank, last = world.size, world.rank, world.size - 1
    for apart in (False, True):
        word = bytearray(b"from 0" if rank == 0 else b"      ")
        total, most = np.array([rank, 2.0]), np.array([rank])
        gathered, every, part = np.zeros(size, int), np.zeros(size, int), np.zeros(1, int)
        given, taken = np.full(size, rank), np.zeros(size, int)
        begin = [
            lambda: world.ibarrier(apart=apart),
            lambda: world.ibcast(word, 0, apart=apart),
            lambda: world.ireduce(total, "sum", last, apart=apart),
            lambda: world.iallreduce(most, "max", apart=apart),
            lambda: world.igather(np.array([rank + 10]), gathered if rank == 0 else None, 0, apart=apart),
            lambda: world.iallgather(np.array([rank + 10]), every, apart=apart),
            lambda: world.iscatter(np.arange(size) if rank == 0 else None, part, 0, apart=apart),
            lambda: world.ialltoall(given, taken, apart=apart),
        ]
        if apart:
            requests = [one() for one in begin]
            world.barrier()  # any other call besides
            assert fmpl.wait_all(reversed(requests)) == [None] * 8
        else:
            for one in begin:
                request = one()
                fails(Code.BUSY, world.barrier)
                request.wait()
        assert word == b"from 0" and most[0] == last and part[0] == rank
        assert list(total) == ([sum(range(size)), 2 * size] if rank == last else [rank, 2])
        assert (every == np.arange(size) + 10).all() and (rank != 0 or (gathered == every).all())
        assert (taken == np.arange(size)).all()
        fails(Code.ARGUMENT, world.iallgather, every, taken[: size - 1], apart=apart)
        if size > 1:
            fails(Code.ARGUMENT, world.ialltoall, np.zeros(1, "u1"), np.zeros(1, "u1"), apart=apart)

    async def all_at_once():
        values = [np.array([k + rank]) for k in range(5)]
        await asyncio.gather(*(world.iallreduce(value, apart=True) for value in values))
        return [int(value[0]) for value in values]

    assert asyncio.run(all_at_once()) == [k * size + sum(range(size)) for k in range(5)]


@ranks(2, 4)
def test_groups_chosen_for_a_call(job):
    world = job.world
    members = range(0, world.size, 2)
    if world.rank in members:
        total = np.array([world.rank, 1])
        world.mcast_reduce(total, members, 0)
        assert list(total) == ([sum(members), len(members)] if world.rank == 0 else [world.rank, 1])
        got = np.zeros(2 * len(members), int)
        world.mcast_alltoall(np.full(2 * len(members), world.rank), got, members)
        assert list(got) == [member for member in members for _ in range(2)]
        if len(members) > 1:
            fails(Code.ARGUMENT, world.mcast_alltoall, bytes(3), bytearray(3), members)
    world.barrier()


@ranks(1, 2, 4)
def test_grids(job):
    world = job.world
    ring = world.grid([world.size], [True])
    assert ring.shift(0) == ((world.rank - 1) % world.size, (world.rank + 1) % world.size)
    before, behind = ring.shift(0)
    got = np.full(2, -1)
    ring.neighbour_allgather(np.array([world.rank]), got)
    assert list(got) == [before, behind]
    ring.neighbour_alltoall(np.array([10, 11]) * (world.rank + 1), got)
    assert list(got) == [11 * (before + 1), 10 * (behind + 1)]
    fails(Code.COMM, world.shift, 0)
    fails(Code.ARGUMENT, ring.rank_at, [0, 0])
    fails(Code.ARGUMENT, world.grid, [1], [True, False])
    fails(Code.ARGUMENT, ring.neighbour_alltoall, bytes(3), bytearray(3))
    if world.size < 4:
        return
    square = world.grid((2, 2))
    here = square.coordinates()
    assert here == [world.rank // 2, world.rank % 2] == square.coordinates(world.rank) and square.rank_at(here) == world.rank
    assert square.rank_at([-1, 0]) is None and square.shift(1, 1) == ((None, world.rank + 1) if here[1] == 0 else (world.rank - 1, None))
    line = world.grid([3])
    assert (line is None) == (world.rank == 3)


@ranks(2)
def test_some_of_several(job):
    world = job.world
    peer = 1 - world.rank
    buffers = [np.zeros(1, int) for _ in range(4)]
    requests = [world.irecv(buffer, peer, index) for index, buffer in enumerate(buffers)]
    assert not fmpl.test_all(requests)
    world.barrier()
    for index in (3, 1):
        world.send(np.array([index]), peer, index)
    ended = []
    while len(ended) < 2:
        some = fmpl.wait_some(requests)
        assert some
        ended += some
    assert sorted(ended) == [1, 3] and not fmpl.test_all(requests)
    world.barrier()
    world.send(np.array([0, 0]), peer, 0)
    world.send(np.array([2]), peer, 2)
    fails(Code.TRUNCATE, lambda: [fmpl.wait_some(requests) for _ in range(2)])
    while not fmpl.test_all(requests):
        pass
    assert fmpl.wait_some(requests) == [] and [int(b[0]) for b in buffers] == [0, 1, 2, 3]


@ranks(1, 3)
def test_communicators_by_key_and_counters(job):
    world = job.world
    even = job.create(world.rank % 2)
    assert even.size == len(range(world.rank % 2, world.size, 2))
    assert (job.create(-1 if world.rank == 0 else 5) is None) == (world.rank == 0)
    before = job.counter(Counter.RECEIVED)
    world.send(b"x", world.rank)
    world.recv(bytearray(1), world.rank)
    assert job.counter(Counter.RECEIVED) == before + 1
    assert job.counter(Counter.WAY_SHORT + Counter.BYTES) >= 0
    fails(Code.ARGUMENT, job.counter, -1)
    since = fmpl.wtime()
    assert 0 <= fmpl.wtime() - since and fmpl.__version__.count(".") == 2


def test_counters_are_those_of_the_header():
    text = (ROOT / "include/fmpl.h").read_text()
    there = {name: int(number) for name, number in re.findall(r"#define FMPL_COUNTER_(\w+) (\d+)", text)}
    assert there == {name: counter.value for name, counter in Counter.__members__.items()}
