"""Pictures that are handed over, not copied: a loan is filled, sent, and read in place. Any number of ranks.

    fmpl run -n 2 python examples/python/frames.py
"""

import numpy as np

import fmpl

FRAMES, SHAPE = 50, (270, 480, 4)

with fmpl.init() as job:
    world = job.world
    if world.rank == 0:
        for k in range(FRAMES):
            for rank in range(1, world.size):
                loan = job.loan(int(np.prod(SHAPE)))
                with loan as view:
                    np.frombuffer(view, "u1").reshape(SHAPE)[...] = k
                world.send_loan(loan, rank)
        print(f"{FRAMES} frames were handed to {world.size - 1} ranks")
    else:
        for k in range(FRAMES):
            with world.recv_loan(0) as view:
                frame = np.frombuffer(view, "u1").reshape(SHAPE)
                assert frame[0, 0, 0] == frame[-1, -1, -1] == k
                del frame
