"""Requests in asyncio."""

import asyncio

import numpy as np
from jobs import ranks
from test_messages import fails

import fmpl
from fmpl import Code


@ranks(2, 3, count=100)
def test_many_messages(job):
    """A task for each, both ways, beside tasks that do something else."""
    world = job.world
    peers = [rank for rank in range(world.size) if rank != world.rank]
    ticks = 0

    async def receive(peer, index):
        buffer = np.zeros(index * 200 + 1, "i4")
        received = await world.irecv(buffer, peer, index)
        assert received.len == buffer.size and (buffer == 1000 * peer + index).all()

    async def send(peer, index):
        await asyncio.sleep(0.0005 * (index % 7))
        await world.isend(np.full(index * 200 + 1, 1000 * world.rank + index, "i4"), peer, index)

    async def tick():
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1

    async def main():
        ticking = asyncio.create_task(tick())
        await asyncio.gather(*(one(peer, index) for one in (receive, send) for peer in peers for index in range(100)))
        while ticks < 3:
            await asyncio.sleep(0.001)
        ticking.cancel()

    asyncio.run(main())
    # And in another loop, behind it.
    asyncio.run(main())


@ranks(2)
def test_cancelled_and_failed(job):
    world, other = job.world, 1 - job.rank

    async def main():
        buffer = bytearray(8)
        try:
            await asyncio.wait_for(_wait(world.irecv(buffer, other)), 0.05)
        except asyncio.TimeoutError:
            pass
        else:
            raise AssertionError("nothing was sent")
        buffer.append(1)
        await world.ibarrier()
        world.send(b"for the next", other)
        short = world.irecv(bytearray(3), other)
        try:
            await short
        except fmpl.Error as error:
            assert error.code == Code.TRUNCATE
        else:
            raise AssertionError("it was too long")
        done = world.irecv(bytearray(1), None)
        assert (await done).nbytes == 0 and (await done).nbytes == 0
        receives = asyncio.gather(_wait(world.irecv_any(bytearray(3), 1)), _wait(world.irecv_any_index(bytearray(4), other)))
        await world.isend_any(b"any", other, 1)
        await world.isend(b"some", other, 30)
        first, second = await receives
        assert (first.source, first.nbytes, second.index, second.nbytes) == (other, 3, 30, 4)
        numbers = np.ones(10)
        await world.iallreduce(numbers)
        assert (numbers == 2).all()

    async def _wait(request):
        return await request

    asyncio.run(main())
    fails(Code.RANK, world.irecv, bytearray(1), 5)
