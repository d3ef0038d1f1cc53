"""Collective calls against what one rank computes, and communicators."""

import numpy as np
from jobs import ranks
from test_messages import fails

import fmpl
from fmpl import Code

INTEGERS = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
OPERATIONS = {
    "sum": (np.add, INTEGERS + ["f2", "f4", "f8", "c8", "c16"]),
    "prod": (np.multiply, INTEGERS + ["f4", "f8", "c8", "c16"]),
    "max": (np.maximum, INTEGERS + ["f4", "f8"]),
    "min": (np.minimum, INTEGERS + ["f4", "f8"]),
    "band": (np.bitwise_and, INTEGERS),
    "bor": (np.bitwise_or, INTEGERS),
    "bxor": (np.bitwise_xor, INTEGERS),
    "land": (np.logical_and, INTEGERS + ["?"]),
    "lor": (np.logical_or, INTEGERS + ["?"]),
    "lxor": (np.logical_xor, INTEGERS + ["?"]),
    "absmax": (lambda a, b: np.where(np.abs(b) > np.abs(a), b, a), ["i4", "f4", "f8"]),
    "absmin": (lambda a, b: np.where(np.abs(b) < np.abs(a), b, a), ["i4", "f4", "f8"]),
}


def vector(rank, kind, n=37):
    """Numbers whose sums and products are exact, none the negative of another."""
    numbers = (np.arange(n) * 7 + rank * 3) % 5 + rank % 2
    if kind == "?":
        return numbers % 2 == 0
    if kind in ("i4", "f4", "f8"):
        numbers = numbers * np.where(np.arange(n) % 3 == 0, -1, 1)
    if kind.startswith("c"):
        return (numbers + 1j * numbers[::-1]).astype(kind)
    return numbers.astype(kind)


@ranks(1, 2, 3, 4)
def test_every_operation_on_every_type(job):
    world = job.world
    for op, (function, kinds) in OPERATIONS.items():
        for kind in kinds:
            until = [vector(0, kind)]
            for rank in range(1, world.size):
                until.append(function(until[-1], vector(rank, kind)).astype(kind))
            mine = vector(world.rank, kind)
            world.allreduce(mine, op)
            assert (mine == until[-1]).all(), (op, kind)
            mine = vector(world.rank, kind)
            root = world.size - 1
            world.reduce(mine, op, root)
            assert (mine == (until[-1] if world.rank == root else vector(world.rank, kind))).all(), (op, kind)
            mine = vector(world.rank, kind)
            world.scan(mine, op)
            assert (mine == until[world.rank]).all(), (op, kind)
    for op, kind in (("max", "c8"), ("sum", "?"), ("band", "f8"), ("absmax", "u1"), ("prod", "f2"), ("sum", "S4"), ("avg", "f8")):
        error = fails(Code.ARGUMENT, world.allreduce, np.zeros(3, kind), op)
        assert op in str(error)
    fails(Code.ARGUMENT, world.allreduce, np.zeros(3, ">f8"))
    fails(Code.ARGUMENT, world.allreduce, np.zeros((3, 3))[:, 0])


@ranks(1, 2, 3, 4)
def test_exchanges(job):
    world, size, rank = job.world, job.size, job.rank
    root = size - 1
    for n in (0, 1, 5, 3000, 100_000):
        mine = np.full(n, rank, "i4")
        all_of = np.repeat(np.arange(size, dtype="i4"), n)
        numbers = mine.copy()
        world.bcast(numbers, root)
        assert (numbers == root).all()
        there = np.zeros(n * size, "i4") if rank == root else None
        world.gather(mine, there, root)
        assert rank != root or (there == all_of).all()
        everywhere = np.zeros((size, n), "i4")
        world.allgather(mine, everywhere)
        assert (everywhere.reshape(-1) == all_of).all()
        # From its own place.
        everywhere = np.zeros((size, n), "i4")
        everywhere[rank] = rank
        world.allgather(everywhere[rank], everywhere)
        assert (everywhere.reshape(-1) == all_of).all()
        part = np.zeros(n, "i4")
        world.scatter(all_of if rank == root else None, part, root)
        assert (part == rank).all()
        sent = np.repeat(np.arange(size, dtype="i4") + 10 * rank, n)
        received = np.zeros_like(sent)
        world.alltoall(sent, received)
        assert (received == np.repeat(np.arange(size) * 10 + rank, n)).all()
        block = np.zeros(n)
        world.reduce_scatter(np.repeat(np.arange(size, dtype="f8"), n), block)
        assert (block == rank * size).all()
    before = np.array([rank + 1])
    world.exscan(before)
    assert before[0] == (1 if rank == 0 else rank * (rank + 1) // 2)
    world.bcast(b"read only" if rank == 0 else bytearray(9), 0)
    world.barrier()


@ranks(1, 2, 3, 4)
def test_uneven_exchanges(job):
    world, size, rank = job.world, job.size, job.rank
    for unit in (1, 1000):
        lengths = [unit * (r + 1) if r != 1 else 0 for r in range(size)]
        mine = np.full(lengths[rank], rank, "f8")
        all_of = np.repeat(np.arange(size, dtype="f8"), lengths)
        there = np.zeros(sum(lengths))
        world.gatherv(mine, there, lengths) if rank == 0 else world.gatherv(mine)
        assert rank != 0 or (there == all_of).all()
        there = np.zeros(sum(lengths))
        world.allgatherv(mine, there, lengths)
        assert (there == all_of).all()
        part = np.zeros(lengths[rank])
        world.scatterv(all_of, lengths, part) if rank == 0 else world.scatterv(None, None, part)
        assert (part == rank).all()
        counts = lambda a, b: unit * ((a * 3 + b) % 4)
        to, of = [counts(rank, r) for r in range(size)], [counts(r, rank) for r in range(size)]
        sent = np.repeat(np.arange(size, dtype="i2") + 100 * rank, to)
        received = np.zeros(sum(of), "i2")
        world.alltoallv(sent, to, received, of)
        assert (received == np.repeat(np.arange(size) * 100 + rank, of)).all()


@ranks(2)
def test_what_does_not_fit_is_refused(job):
    """Before anybody waits for it, so that the next call goes on."""
    world = job.world
    whole = np.zeros(8)
    refused = [
        lambda: world.alltoall(np.zeros(3), np.zeros(3)),
        lambda: world.alltoall(np.zeros(4), np.zeros(2)),
        lambda: world.alltoall(whole[:4], whole[2:6]),
        lambda: world.allgather(np.zeros(4), np.zeros(7)),
        lambda: world.allgather(whole[1:4], whole[:6]),
        lambda: world.reduce_scatter(np.zeros(4), np.zeros(3)),
        lambda: world.reduce_scatter(np.zeros(4), np.zeros(2, "f4")),
        lambda: world.allgatherv(np.zeros(1), np.zeros(2), [1]),
        lambda: world.alltoallv(np.zeros(2), [1, 1], np.zeros(2), [1]),
        lambda: world.allgatherv(np.zeros(1), np.zeros(1), [1, 1]),
        lambda: world.allgatherv(np.zeros(1), np.zeros(1), [1, 1 << 62]),
        lambda: world.bcast(np.zeros((3, 3))[:, 0]),
    ]
    for call in refused:
        fails(Code.ARGUMENT, call)
    # At the root: the room for all is too small.
    assert "12 bytes, where there are 11" in str(fails(Code.ARGUMENT, world.split(world.rank).gather, bytearray(12), bytearray(11)))
    fails(Code.RANK, world.bcast, bytearray(1), 2)
    fails(Code.RANK, world.reduce, np.zeros(1), "sum", -1)
    numbers = np.ones(2)
    world.allreduce(numbers)
    assert (numbers == 2).all()


@ranks(1, 3)
def test_that_do_not_wait(job):
    world = job.world
    for _ in range(3):
        barrier = world.ibarrier()
        fails(Code.BUSY, world.barrier)
        barrier.wait()
        numbers = np.arange(5000) + (0 if world.rank == 0 else 7)
        with world.ibcast(numbers, 0):
            pass
        assert (numbers == np.arange(5000)).all()
        request = world.iallreduce(numbers, "max")
        while not request.test():
            pass
        assert (numbers == np.arange(5000)).all() and request.received is None
        # Let go, it goes on; the next call waits for its end.
        world.iallreduce(np.ones(3))
        while True:
            try:
                world.barrier()
                break
            except fmpl.Error as error:
                assert error.code == Code.BUSY


@ranks(2, 4)
def test_communicators(job):
    world = job.world
    half = world.split(world.rank % 2, -world.rank)
    assert half.size == world.size // 2 and half.rank == half.size - 1 - world.rank // 2
    half.name = "half"
    assert half.name == "half" and world.name == ""
    assert half.translate(half.rank, world) == world.rank and world.translate(world.rank, half) == half.rank
    assert world.translate((world.rank + 1) % 2, half) is None
    numbers = np.array([world.rank])
    half.allreduce(numbers)
    assert numbers[0] == sum(range(world.rank % 2, world.size, 2))
    assert world.split(None) is None
    node = world.split_node()
    assert (node.rank, node.size) == (world.rank, world.size)
    if world.rank < 2:
        # In this order, called by these two alone.
        with world.group([1, 0]) as two:
            assert (two.rank, two.size) == (1 - world.rank, 2)
        fails(Code.ARGUMENT, world.group, [0, 0, 1])
    with world.dup() as other:
        # Messages of different communicators never mix.
        right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
        got = bytearray(5)
        with other.irecv(got, left):
            world.isend(b"world", right)
            other.send(b"other", right)
        assert got == b"other" and world.recv_bytes(left) == b"world"
        request = other.irecv(got, left)
        fails(Code.BUSY, other.free)
        assert request.cancel()
    fails(Code.COMM, other.barrier)
    other.free()
    fails(Code.COMM, world.free)
    # Those that are let go are freed: more than there can be at a time.
    for _ in range(300):
        world.dup()
    half.free(), node.free()
    world.barrier()
