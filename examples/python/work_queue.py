"""Whoever is done asks for more: rank 0 receives from any source. Any number of ranks.

    fmpl run -n 4 python examples/python/work_queue.py
"""

import array

import fmpl

TASKS, ASK, GET = 200, 0, 1


def work(number):
    return sum(k * k for k in range(number % 50))


def serve(world):
    """Gives out the numbers of the tasks; -1: there are no more."""
    result, left, total = array.array("q", [0]), world.size - 1, 0
    tasks = iter(range(TASKS))
    while left:
        got = world.recv_any(result, ASK)
        total += result[0]
        task = next(tasks, -1)
        left -= task == -1
        world.send(array.array("q", [task]), got.source, GET)
    # What is left when there is nobody else.
    return total + sum(work(task) for task in tasks)


def ask(world):
    task, result = array.array("q", [0]), array.array("q", [0])
    while True:
        world.send_any(result, 0, ASK)
        world.recv(task, 0, GET)
        if task[0] == -1:
            return
        result[0] = work(task[0])


with fmpl.init() as job:
    world = job.world
    if world.rank == 0:
        total = serve(world)
        assert total == sum(map(work, range(TASKS)))
        print(f"{TASKS} tasks done by {world.size} ranks")
    else:
        ask(world)
