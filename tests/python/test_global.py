"""Global memory: what any rank has registered is read, written and changed atomically by all."""

import numpy as np
import pytest
from jobs import ranks
from test_messages import fails

from fmpl import Code


def exchange(memory, address):
    """Everybody's address of something."""
    memory.write(memory.starter(memory.rank), np.array([address], "u8"))
    memory.sync()
    all = np.zeros(1, "u8")
    addresses = []
    for rank in range(memory.size):
        memory.read(memory.starter(rank), all)
        addresses.append(int(all[0]))
    memory.sync()
    return addresses


@ranks(1, 2, 3)
def test_values_are_copied_and_counted(job):
    with job.global_memory() as memory:
        rank, size = memory.rank, memory.size
        assert (rank, size) == (job.rank, job.size)
        table, words = np.arange(100.0) + 1000 * rank, np.zeros(4, "u8")
        with memory.register(table) as mine, memory.register(words) as counters:
            assert mine.nbytes == 800 and memory.rank_of(mine.address) == rank and memory.colour_of(mine.address) < memory.colours
            tables, all_words = exchange(memory, mine.address), exchange(memory, counters.address)
            right, other = (rank + 1) % size, (rank + 2) % size
            got = np.zeros(10)
            memory.read(tables[right] + 8 * 50, got)
            assert (got == np.arange(50, 60) + 1000 * right).all()
            memory.sync()
            # A copy between two other ranks, and one that follows it.
            first = memory.copy(tables[right] + 8 * 90, tables[other], 8)
            second = memory.copy(mine.address, tables[right] + 8 * 90, 8, after=first)
            second.wait()
            assert first.test() and second.test()
            memory.copy(mine.address, mine.address + 8, 8, after="all").wait()
            memory.complete()
            memory.sync()
            for _ in range(100):
                memory.fetch_add(all_words[0], 1)
            memory.sync()
            assert memory.fetch_add(all_words[0], 0) == 100 * size
            memory.sync()
            word = all_words[right] + 8
            assert memory.swap(word, 0b1100) == 0 and memory.fetch_xor(word, 0b1010) == 0b1100
            assert memory.fetch_or(word, 0b1000) == 0b0110 and memory.fetch_and(word, 0b0011) == 0b1110
            assert memory.compare_swap(word, 5, 6) == 0b0010 and memory.compare_swap(word, 2, -1) == 2
            assert memory.swap(word, 0) == 2**64 - 1
            assert memory.swap(word + 4, 2**32 - 1, 4) == 0 and memory.fetch_add(word + 4, 2, 4) == 2**32 - 1
            memory.sync()
            assert words[1] == 1 << 32
            fails(Code.ARGUMENT, memory.swap, word + 4, 1)
            fails(Code.ARGUMENT, memory.swap, word, 2**64)
            fails(Code.ARGUMENT, memory.swap, word, 1, 2)
            fails(Code.ARGUMENT, memory.copy, 0, mine.address, 8)
            with pytest.raises(TypeError):
                memory.copy(mine.address, mine.address, 8, after=3)
            memory.sync()
        # What is unregistered is out of reach, and the program's alone.
        memory.sync()
        fails(Code.ARGUMENT, memory.swap, all_words[right], 1)
        memory.sync()
        with pytest.raises(BufferError):
            memory.register(b"constant")
    fails(Code.INIT, memory.sync)


@ranks(2, 3)
def test_ranks_are_numbered_anew(job):
    memory = job.global_memory()
    fails(Code.ARGUMENT, memory.reset, 0)
    assert memory.rank == job.rank
    memory.reset((job.rank + 1) % job.size)
    assert memory.rank == (job.rank + 1) % job.size
    mine = np.array([memory.rank])
    kept = memory.register(mine)
    addresses = exchange(memory, kept.address)
    got = np.zeros(1, int)
    for rank, address in enumerate(addresses):
        memory.read(address, got)
        assert got[0] == rank == memory.rank_of(address)
    memory.sync()
    # Left open: the end of the job closes it.


@ranks(2)
def test_a_registered_buffer_is_held(job):
    memory = job.global_memory()
    data = bytearray(100)
    kept = memory.register(data)
    with pytest.raises(BufferError):
        data.append(1)
    kept.unregister()
    data.append(1)
    # One that is let go ends, too.
    memory.register(data)
    data.append(1)
    memory.sync()
    memory.close()
    memory.close()


@ranks(1, 2)
def test_a_reset_ends_registrations(job):
    memory, data = job.global_memory(), bytearray(100)
    with memory.register(data) as kept:
        memory.reset(memory.rank)
    data.append(1)
    kept.unregister()
    memory.sync()


@ranks(1, 2)
def test_registrations_last_until_the_last_global_memory_is_closed(job):
    first, second = job.global_memory(), job.global_memory()
    data, more = bytearray(8), bytearray(8)
    kept, lasting = first.register(data), first.register(more)
    first.close()
    with pytest.raises(BufferError):
        data.append(1)
    second.write(kept.address, b"reaches!")
    assert data == b"reaches!"
    kept.unregister()
    data.append(1)
    fails(Code.ARGUMENT, second.write, kept.address, b"too late")
    second.close()
    third = job.global_memory()
    anew = [third.register(bytearray(8)) for _ in range(2)]
    # Of the global memory of before: it has ended, whatever has its key now.
    lasting.unregister()
    more.append(1)
    for registration in anew:
        third.write(registration.address, b"is there")
    third.sync()


def test_an_abort_says_why():
    from jobs import run
    import sys

    program = (
        "import fmpl\n"
        "job = fmpl.init(1)\n"
        "memory = job.global_memory()\n"
        "if job.rank == 1: memory.abort('the table is full')\n"
        "job.world.recv(bytearray(1), 1)\n"
    )
    done = run(2, sys.executable, "-c", program)
    assert done.returncode == 1 and "rank 1 aborts the job: the table is full" in done.stderr
