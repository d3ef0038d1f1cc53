"""Messages that are handed over."""

import gc

import numpy as np
from jobs import ranks
from test_messages import fails, pattern

from fmpl import Code


@ranks(2)
def test_handed_over(job):
    world, other = job.world, 1 - job.rank
    for n in (0, 1, 100, 4096, 1_000_000):
        if world.rank == 0:
            loan = job.loan(n)
            assert loan.writable and loan.nbytes == len(loan) == n and loan.source is None
            with loan as view:
                assert not view.readonly and view.nbytes == n
                view[:] = pattern(n, n)
            world.send_loan(loan, 1)
            fails(Code.ARGUMENT, world.send_loan, loan, 1)
        else:
            with world.recv_loan(0) as view:
                assert view.readonly and (np.frombuffer(view, "u1") == pattern(n, n)).all()
    # A part of it; as an ordinary message; an ordinary message in place; of any source.
    if world.rank == 0:
        loan = job.loan(100)
        memoryview(loan)[:7] = b"partly."
        world.send_loan(loan, other, nbytes=7)
        loan = job.loan(10)
        memoryview(loan)[:] = b"ten bytes."
        world.send_loan(loan, other)
        world.send(b"plain", other)
        loan = job.loan(3)
        memoryview(loan)[:] = b"any"
        world.send_loan_any(loan, other, 2)
    else:
        assert world.recv_bytes(0) == b"partly."
        buffer = bytearray(10)
        world.recv(buffer, 0)
        assert buffer == b"ten bytes."
        with world.recv_loan(0) as view:
            assert view == b"plain"
        loan = world.recv_loan_any(2)
        assert loan.source == 0 and bytes(loan) == b"any"
        fails(Code.ARGUMENT, world.send_loan, loan, 0)
        loan.release()


@ranks(2)
def test_views(job):
    """A loan is not sent under a view, and not returned under one."""
    world, other = job.world, 1 - job.rank
    loan = job.loan(800)
    numbers = np.frombuffer(loan, "f8")
    numbers[:] = world.rank
    error = fails(Code.ARGUMENT, world.send_loan, loan, other)
    assert "views" in str(error)
    fails(Code.BUSY, job.finalize)
    del numbers
    world.send_loan(loan, other)
    try:
        memoryview(loan)
    except BufferError:
        pass
    else:
        raise AssertionError("a view of what was sent")
    with world.recv_loan(other) as view:
        numbers = np.frombuffer(view, "f8")
        try:
            numbers[0] = 1
        except ValueError:
            pass
        else:
            raise AssertionError("written into what was received")
    # The block is over, and the array still looks at it.
    assert (numbers == other).all()
    received = world.recv_loan
    del numbers, view
    # Let go without a release, they go back: more than there can be at a time.
    for _ in range(5000):
        job.loan(1 << 20)
    for k in range(500):
        loan = job.loan(1000)
        memoryview(loan)[:2] = b"ab"
        world.send_loan(loan, other, 1)
        assert bytes(received(other, 1))[:2] == b"ab"
    gc.collect()
    world.barrier()
