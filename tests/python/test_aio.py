"""Requests in asyncio."""

import asyncio

import numpy as np
from jobs import ranks, script
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

    asyncio.run(main())
    fails(Code.RANK, world.irecv, bytearray(1), 5)


async def _wait(request):
    return await request


async def _cancelled(task):
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return
    raise AssertionError("a task that was cancelled has ended otherwise")


@ranks(2)
def test_one_task_awaits(job):
    """A second one is told so, and disturbs nothing."""
    world, other = job.world, 1 - job.rank

    async def main():
        request = world.irecv(bytearray(1), other)
        first = asyncio.create_task(_wait(request))
        await asyncio.sleep(0)
        for _ in range(2):
            try:
                await request
            except RuntimeError:
                continue
            raise AssertionError("two tasks await one request")
        world.barrier()
        world.send(b"x", other)
        assert (await asyncio.wait_for(first, 60)).nbytes == 1
        assert (await request).nbytes == 1

    asyncio.run(main())


@ranks(2)
def test_cancelling_waits_for_no_one(job):
    """A collective request goes on, and can be awaited again; an error of a receive is no task's that is cancelled."""
    world, other = job.world, 1 - job.rank

    async def main():
        if world.rank == 0:
            barrier = world.ibarrier()
            task = asyncio.create_task(_wait(barrier))
            await asyncio.sleep(0.1)
            await _cancelled(task)
            assert not barrier.done
            world.send(b"come", other)
            await barrier
        else:
            world.recv(bytearray(4), other)
            await world.ibarrier()
        short = world.irecv(bytearray(1), other)
        task = asyncio.create_task(_wait(short))
        await asyncio.sleep(0)
        world.barrier()
        world.send(b"too long", other)
        world.barrier()
        await _cancelled(task)
        assert short.done

    asyncio.run(main())


def test_a_loop_longer_than_the_job(tmp_path):
    """The end of a job closes its descriptor; whoever gets its number next can watch it in the same loop."""
    done = script(
        2,
        """
import asyncio, os, fmpl, fmpl.aio

async def main():
    loop = asyncio.get_running_loop()
    for turn in range(3):
        with fmpl.init() as job:
            # The second one is told by the descriptor, and so leaves it watched for a while.
            for _ in range(2):
                buffer = bytearray(1)
                coming = asyncio.create_task(fmpl.aio.wait(job.world.irecv(buffer, 1 - job.rank)))
                await asyncio.sleep(0)
                job.world.barrier()
                job.world.send(b"%d" % turn, 1 - job.rank)
                await coming
                assert buffer == b"%d" % turn
            fd = job.event_fd()
        ours, woken = os.eventfd(1), asyncio.Event()
        if ours != fd:
            os.dup2(ours, fd)
        loop.add_reader(fd, woken.set)
        await asyncio.wait_for(woken.wait(), 60)
        # The reader of the job goes meanwhile, and takes nothing with it.
        await asyncio.sleep(0.2)
        woken.clear()
        await asyncio.wait_for(woken.wait(), 60)
        loop.remove_reader(fd)
        for end in {ours, fd}:
            os.close(end)
    print("watched")

asyncio.run(main())
""",
        tmp_path,
    )
    assert done.returncode == 0 and done.stdout.count("watched") == 2, f"{done.stdout}\n{done.stderr}"
