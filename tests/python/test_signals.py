"""Ctrl-C and other signals while a call waits."""

import os
import signal
import threading
import time

import numpy as np
from jobs import ranks
from test_messages import fails

from fmpl import Code


def interrupted(call, *args):
    """The call waits until a signal comes, which ends it."""
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    since = time.monotonic()
    try:
        call(*args)
    except KeyboardInterrupt:
        pass
    else:
        raise AssertionError("no KeyboardInterrupt")
    finally:
        timer.join()
    return time.monotonic() - since


@ranks(2)
def test_messages_go_on(job):
    """Each wait is ended by Ctrl-C, and what comes afterwards comes to the next call."""
    world = job.world
    job.set_send_buffer(1 << 20, "synchronous")
    if world.rank == 0:
        interrupted(world.recv, bytearray(8), 1)
        interrupted(world.recv, np.zeros(100_000), 1, 1)
        interrupted(world.recv_any, bytearray(8), 2)
        interrupted(world.recv_any_index, bytearray(8), 1)
        interrupted(world.recv_loan, 1, 3)
        interrupted(world.recv_object, 1, 3)
        interrupted(world.send, bytes(1 << 20), 1, 9)
        buffer = bytearray(8)
        request = world.irecv(buffer, 1, 4)
        interrupted(request.wait)
        assert request.done
        buffer.append(1)
        requests = [world.irecv(bytearray(8), 1, k) for k in (5, 6)]
        interrupted(__import__("fmpl").wait_any, requests)
        assert [r.cancel() for r in requests] == [True, True]
        world.send(b"go", 1)
        assert world.recv_bytes(1) == b"first"
        numbers = np.zeros(100_000)
        world.recv(numbers, 1, 1)
        assert (numbers == 3).all()
        assert world.recv_any(bytearray(8), 2).nbytes == 3
        with world.recv_loan(1, 3) as view:
            assert bytes(view) == b"loan"
        world.recv(bytearray(8), 1, 4)
        world.recv(bytearray(1 << 20), 1, 9)
    else:
        world.recv(bytearray(2), 0)
        world.send(b"first", 0)
        world.send(np.full(100_000, 3.0), 0, 1)
        world.send_any(b"any", 0, 2)
        world.send(b"loan", 0, 3)
        world.send(b"four", 0, 4)
        world.send(bytes(1 << 20), 0, 9)


@ranks(2)
def test_collective_calls_go_on(job):
    """Others rely on them: they come to their end, and then there is the KeyboardInterrupt."""
    world = job.world
    if world.rank == 0:
        interrupted(world.barrier)
        interrupted(lambda: world.ibarrier().wait())
        interrupted(world.dup)
    else:
        for call in (world.barrier, lambda: world.ibarrier().wait(), world.dup):
            time.sleep(0.6)
            call()
    with world.dup() as other:
        numbers = np.ones(3)
        other.allreduce(numbers)
        assert (numbers == 2).all()


@ranks(1)
def test_a_handler_calls_nothing_of_the_library(job):
    world = job.world
    said = []

    def handler(*_):
        said.append(fails(Code.BUSY, world.barrier))
        if len(said) == 2:
            raise TimeoutError

    signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
    try:
        world.recv(bytearray(1), 0)
    except TimeoutError:
        pass
    else:
        raise AssertionError("the wait went on")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    assert len(said) == 2 and "signal handler" in str(said[0])
    world.barrier()
