"""A number goes round, and each rank adds its own; then the same by one collective call. Any number of ranks.

    fmpl run -n 4 python examples/python/ring.py
"""

import numpy as np

import fmpl

with fmpl.init() as job:
    world = job.world
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    total = np.array([world.rank + 1])
    passing, arriving = total.copy(), np.empty_like(total)
    for _ in range(world.size - 1):
        world.sendrecv(passing, right, arriving, left)
        total += arriving
        passing, arriving = arriving, passing
    at_once = np.array([world.rank + 1])
    world.allreduce(at_once)
    assert total == at_once
    if world.rank == 0:
        print(f"the sum of 1 to {world.size} is {total[0]}")
