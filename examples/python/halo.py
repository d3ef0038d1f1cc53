"""Heat on a plate, whose columns are dealt out: the borders, which are columns and so not contiguous, go without a copy while the inside is
computed. Any number of ranks that divides 240.

    fmpl run -n 4 python examples/python/halo.py
"""

import numpy as np

import fmpl

ROWS, COLUMNS, STEPS = 200, 240, 50


def step(old, new):
    """The inside of a part of the plate."""
    new[1:-1, 1:-1] = old[1:-1, 1:-1] + 0.1 * (
        old[:-2, 1:-1] + old[2:, 1:-1] + old[1:-1, :-2] + old[1:-1, 2:] - 4 * old[1:-1, 1:-1]
    )


def beginning():
    plate = np.zeros((ROWS, COLUMNS + 2))
    plate[60:140, 80:160] = 100.0
    return plate


with fmpl.init() as job:
    world = job.world
    width = COLUMNS // world.size
    assert width * world.size == COLUMNS, "the ranks must divide 240"
    # A column of each neighbour on either side.
    plate = beginning()[:, world.rank * width : (world.rank + 1) * width + 2].copy()
    new = plate.copy()
    left = world.rank - 1 if world.rank > 0 else None
    right = world.rank + 1 if world.rank + 1 < world.size else None
    for _ in range(STEPS):
        with (
            world.irecv(plate[:, 0], left, 0),
            world.irecv(plate[:, -1], right, 1),
            world.isend(plate[:, 1], left, 1),
            world.isend(plate[:, -2], right, 0),
        ):
            step(plate[:, 1:-1], new[:, 1:-1])
        # The columns that need the neighbours'.
        step(plate[:, :3], new[:, :3])
        step(plate[:, -3:], new[:, -3:])
        plate, new = new, plate

    parts = np.empty((world.size, ROWS, width)) if world.rank == 0 else None
    world.gather(np.ascontiguousarray(plate[:, 1:-1]), parts)
    if world.rank == 0:
        alone, other = beginning(), beginning()
        for _ in range(STEPS):
            step(alone, other)
            alone, other = other, alone
        together = np.concatenate(list(parts), axis=1)
        assert np.allclose(together, alone[:, 1:-1], rtol=0, atol=1e-12)
        print(f"{STEPS} steps on {world.size} ranks: the same as on one")
