"""One way between two ranks, NumPy arrays: microseconds of each block as JSON. Started by tests/promises/users_python.py.

    fmpl run -n 2 python one_way.py fmpl
    mpiexec -n 2 python one_way.py mpi4py
"""

import json
import sys
import time

import numpy as np

# Bytes, messages of a block, blocks.
CASES = [(8, 4000, 10), (1 << 20, 60, 10)]


def blocks(rank, send, recv, barrier):
    """{bytes: [microseconds one way]}; a first block is left out."""
    times = {}
    for size, messages, count in CASES:
        buffer = np.zeros(size, "u1")
        for block in range(count + 1):
            barrier()
            since = time.perf_counter()
            for _ in range(messages):
                if rank == 0:
                    send(buffer, 1, 0)
                    recv(buffer, 1, 0)
                else:
                    recv(buffer, 0, 0)
                    send(buffer, 0, 0)
            if block:
                times.setdefault(size, []).append((time.perf_counter() - since) / messages / 2 * 1e6)
    return times


if sys.argv[1] == "fmpl":
    import fmpl

    with fmpl.init() as job:
        world = job.world
        times = blocks(world.rank, world.send, world.recv, world.barrier)
        rank = world.rank
else:
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    assert world.Get_size() == 2, "not started by the launcher of this MPI"
    rank = world.Get_rank()
    times = blocks(rank, world.Send, world.Recv, world.Barrier)
if rank == 0:
    print(json.dumps(times))
