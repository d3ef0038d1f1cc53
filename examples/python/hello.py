"""A message from each rank to rank 0. Any number of ranks; needs nothing but the package.

    fmpl run -n 4 python examples/python/hello.py
"""

import fmpl

with fmpl.init() as job:
    world = job.world
    if world.rank != 0:
        world.send(f"hello from rank {world.rank}".encode(), 0)
    else:
        print(f"rank 0 of {world.size} listens")
        for rank in range(1, world.size):
            print(world.recv_bytes(rank).decode())
