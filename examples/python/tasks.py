"""asyncio: a task for each message, in one thread, beside a task that does something else. Any number of ranks.

    fmpl run -n 2 python examples/python/tasks.py
"""

import asyncio

import numpy as np

import fmpl

MESSAGES = 100


async def exchange(world, peer, index):
    arriving = np.empty(1000)
    coming = world.irecv(arriving, peer, index)
    await world.isend(np.full(1000, world.rank + index / 1000), peer, index)
    received = await coming
    assert received.len == 1000 and (arriving == peer + index / 1000).all()


async def clock(ticks):
    while True:
        await asyncio.sleep(0.001)
        ticks.append(asyncio.get_running_loop().time())


async def main(world):
    ticks = []
    ticking = asyncio.create_task(clock(ticks))
    peers = [rank for rank in range(world.size) if rank != world.rank]
    await asyncio.gather(*(exchange(world, peer, index) for peer in peers for index in range(MESSAGES)))
    await asyncio.sleep(0.01)
    ticking.cancel()
    if world.rank == 0:
        print(f"{MESSAGES} messages with each of {world.size} ranks, by tasks of one thread; the clock ticked: {len(ticks) > 0}")


with fmpl.init(MESSAGES) as job:
    asyncio.run(main(job.world))
