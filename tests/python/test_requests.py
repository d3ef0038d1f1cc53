"""Requests: their buffers, what becomes of those that are let go, threads."""

import gc
import threading
import time
import weakref

import numpy as np
from jobs import ranks, script
from test_messages import fails, pattern

import fmpl
from fmpl import Code


def patiently(call, *args):
    """A call that is made again while it is busy."""
    limit = time.monotonic() + 60
    while True:
        try:
            return call(*args)
        except fmpl.Error as error:
            assert error.code == Code.BUSY and time.monotonic() < limit, error
            time.sleep(0.001)


@ranks(2)
def test_with(job):
    world = job.world
    if world.rank == 0:
        numbers = np.zeros(1000)
        with world.irecv(numbers, 1) as request:
            world.barrier()
        assert request.done and request.received.len == 1000 and (numbers == 7).all()
        assert request.wait() is request.received and request.test()
        # An exception withdraws a receive; the message comes to the next one.
        try:
            with world.irecv(numbers, 1, 1) as request:
                raise ZeroDivisionError
        except ZeroDivisionError:
            pass
        assert request.done and request.received is None
        world.barrier()
        assert world.recv_bytes(1, 1) == b"later"
    else:
        world.barrier()
        world.send(np.full(1000, 7.0), 0)
        world.barrier()
        world.send(b"later", 0, 1)


@ranks(2)
def test_buffers_are_held(job):
    world, other = job.world, 1 - job.rank
    buffer = bytearray(100_000)
    request = world.irecv(buffer, other, 3)
    try:
        buffer.append(1)
    except BufferError:
        pass
    else:
        raise AssertionError("a buffer was resized under a receive")
    array = np.zeros(4)
    gone = weakref.ref(array)
    second = world.irecv(array, other, 4)
    del array
    gc.collect()
    assert gone() is not None, "a buffer was freed under a receive"
    world.barrier()
    world.send(bytes(100_000), other, 3)
    world.send(np.ones(4), other, 4)
    request.wait(), second.wait()
    buffer.append(1)
    gc.collect()
    assert gone() is None, "a request that is over holds its buffer"


@ranks(2)
def test_let_go(job):
    """A send goes on without its request, a receive is withdrawn."""
    world = job.world
    if world.rank == 0:
        job.set_send_buffer(1 << 20, "synchronous")
        for k in range(5):
            world.isend(pattern(300_000, k), 1, k)
        world.isend_any(pattern(300_000, 9), 1, 9)
        gc.collect()
        world.barrier()
        world.barrier()
        for k in range(5):
            world.irecv(bytearray(8), 1, k)
            world.irecv_any(bytearray(8), k)
        world.barrier()
        for k in range(5):
            assert world.recv_bytes(1, k) == b"for whom"
            assert world.recv_any(bytearray(8), k).source == 1
    else:
        world.barrier()
        buffer = np.zeros(300_000, "u1")
        for k in range(5):
            world.recv(buffer, 0, k)
            assert (buffer == pattern(300_000, k)).all()
        world.recv_any(buffer, 9)
        assert (buffer == pattern(300_000, 9)).all()
        world.barrier()
        world.barrier()
        for k in range(5):
            world.send(b"for whom", 0, k)
            world.send_any(b"whomever", 0, k)


@ranks(2)
def test_what_was_let_go_blocks_nothing(job):
    """Once it is over, its index, its communicator and the spool are free without another request that begins."""
    world = job.world
    if world.rank == 0:
        job.set_send_buffer(1 << 20, "synchronous")
        world.isend(pattern(300_000, 1), 1, 7)
        fails(Code.BUSY, world.send, b"x", 1, 7)
        fails(Code.BUSY, world.sendbuf_check)
        world.barrier()
        world.barrier()
        patiently(world.send, b"x", 1, 7)
        world.isend_any(pattern(300_000, 2), 1, 7)
        world.barrier()
        patiently(world.send_any, b"y", 1, 7)
        world.isend(pattern(300_000, 3), 1, 8)
        world.barrier()
        assert patiently(world.sendbuf_check)[1] == 0
    else:
        buffer = np.zeros(300_000, "u1")
        world.barrier()
        world.recv(buffer, 0, 7)
        assert (buffer == pattern(300_000, 1)).all()
        world.barrier()
        assert world.recv_bytes(0, 7) == b"x"
        world.barrier()
        assert world.recv_any(buffer, 7).nbytes == 300_000
        assert world.recv_any(buffer, 7).nbytes == 1
        world.barrier()
        world.recv(buffer, 0, 8)
    for call in (world.barrier, world.dup, lambda: world.allreduce(np.ones(2))):
        world.iallreduce(np.ones(3))
        patiently(call)
    world.barrier()


@ranks(2)
def test_cancel(job):
    world, other = job.world, 1 - job.rank
    request = world.irecv(bytearray(8), other)
    assert request.cancel() and request.cancel() and request.done and request.wait() is None
    world.barrier()
    request = world.irecv(bytearray(8), other)
    world.send(b"too late", other)
    world.barrier()
    assert not request.cancel()
    assert request.wait().nbytes == 8 and not request.cancel()
    sent = world.isend(b"sent", other)
    assert not sent.cancel()
    world.recv(bytearray(8), other)
    sent.wait()


@ranks(2)
def test_several(job):
    world, other = job.world, 1 - job.rank
    buffers = [bytearray(4) for _ in range(4)]
    requests = [world.irecv(buffer, other, k) for k, buffer in enumerate(buffers)]
    world.barrier()
    if world.rank == 0:
        for k in (2, 0, 3, 1):
            world.recv(bytearray(1), other, 9)
            world.send(b"%4d" % k, other, k)
    else:
        for k in (2, 0, 3, 1):
            world.send(b"x", other, 9)
            assert fmpl.wait_any(requests) == k
            assert requests[k].received.index == k and buffers[k] == b"%4d" % k
        assert fmpl.wait_any(requests) is None and fmpl.wait_any([]) is None
        for k in range(4):
            world.send(b"abcd", other, k)
    if world.rank == 0:
        assert [r.nbytes for r in fmpl.wait_all(requests)] == [4] * 4
    # An error of one is told when all are over.
    short, long = world.irecv(bytearray(1), other, 5), world.irecv(bytearray(4), other, 6)
    world.barrier()
    world.send(b"1234", other, 5), world.send(b"1234", other, 6)
    fails(Code.TRUNCATE, fmpl.wait_all, [short, long])
    assert short.done and long.received.nbytes == 4
    one = world.irecv(bytearray(1), other, 7)
    fails(Code.BUSY, fmpl.wait_any, [one, one])
    assert one.cancel()
    # Collective calls among them.
    barrier = world.ibarrier()
    assert fmpl.wait_any([barrier]) == 0 and barrier.done


@ranks(2)
def test_all_in_any_order(job):
    """Rank 0 waits for all; the message of the first in its list is sent when those of the others have been taken."""
    world, long = job.world, 1_000_000
    other = world.dup()
    for comm in (world, other):
        comm.set_send_buffer(1 << 16, "synchronous")
    if world.rank == 0:
        buffers = [bytearray(8), bytearray(long), bytearray(long), bytearray(8)]
        requests = [world.irecv(buffers[0], 1), world.irecv_any(buffers[1], 1)]
        requests += [other.irecv_any_index(buffers[2], 1), world.mcast_irecv(buffers[3])]
        requests += [world.isend(b"to all", 1, 2), requests[1]]
        received = fmpl.wait_all(requests)
        assert [r and r.nbytes for r in received] == [8, long, long, 8, None, long]
        assert [r and r.index for r in received[:3]] == [0, 1, 5] and buffers[1] == b"x" * long
        short = world.irecv_any(bytearray(1), 1)
        first = world.irecv(buffers[0], 1)
        world.barrier()
        fails(Code.TRUNCATE, fmpl.wait_all, [first, short])
        assert first.received.nbytes == 8 and short.done
    else:
        world.mcast(b"of group", [0])
        other.send(b"y" * long, 0, 5)
        world.send_any(b"x" * long, 0, 1)
        world.send(b"the last", 0)
        world.recv(bytearray(6), 0, 2)
        world.barrier()
        world.send_any(b"long", 0, 1)
        world.send(b"the last", 0)
    other.free()


@ranks(2)
def test_threads(job):
    """Each of several threads on its own index; two on one are told so; a request is completed by one."""
    world, other = job.world, 1 - job.rank
    wrong = []

    def talk(index):
        try:
            buffer = np.zeros(2000, "i8")
            for k in range(100):
                n = k * 20 + 1
                if world.rank == 0:
                    world.send(np.full(n, k + index), other, index)
                    world.recv(buffer, other, index)
                else:
                    world.recv(buffer, other, index)
                    world.send(np.full(n, k + index), other, index)
                assert (buffer[:n] == k + index).all()
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=talk, args=(index,)) for index in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not wrong, wrong
    request = world.irecv(bytearray(1), other, 10)
    waiting = threading.Thread(target=request.wait)
    waiting.start()
    # Busy once the thread has come to its wait.
    limit = time.monotonic() + 60
    while not _is_busy(request.test):
        assert time.monotonic() < limit, "the thread does not wait"
        time.sleep(0.001)
    fails(Code.BUSY, world.recv, bytearray(1), other, 10)
    world.barrier()
    world.send(b"x", other, 10)
    waiting.join()
    assert request.received.nbytes == 1


def _is_busy(call):
    try:
        call()
    except fmpl.Error as error:
        assert error.code == Code.BUSY, error
        return True
    return False


@ranks(2)
def test_others_run_while_one_waits(job):
    world, other = job.world, 1 - job.rank
    turns, over = 0, False

    def count():
        nonlocal turns
        while not over:
            turns += 1
            time.sleep(0.001)

    # The other counts only from when this one is there, too.
    world.barrier()
    thread = threading.Thread(target=count)
    thread.start()
    if world.rank == 0:
        world.recv(bytearray(1), other)
        assert turns > 5, turns
    else:
        while turns < 50:
            time.sleep(0.01)
        world.send(b"x", other)
    over = True
    thread.join()


def test_what_is_left_at_finalize_is_told(tmp_path):
    done = script(
        2,
        """
import fmpl
job = fmpl.init()
buffer = bytearray(8)
request = job.world.irecv(buffer, 1 - job.rank, 3)
try:
    job.finalize()
except fmpl.Error as error:
    print(error.code.name, error)
try:
    buffer.append(1)
except BufferError:
    print("held")
for call in (request.wait, request.test, request.cancel):
    try:
        call()
    except fmpl.Error as error:
        print(error.code.name)
del request
try:
    buffer.append(1)
except BufferError:
    print("held for ever")
""",
        tmp_path,
        options=["--keep-going"],
    )
    assert done.returncode != 0 and "finalize has failed" in done.stderr
    for what, often in (("PENDING", 2), ("index 3", 2), ("held\n", 2), ("INIT", 6), ("held for ever", 2)):
        assert done.stdout.count(what) == often, done.stdout
