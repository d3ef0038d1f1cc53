"""Memory of a node's ranks side by side."""

import gc

import numpy as np
from jobs import ranks, script
from test_messages import fails

from fmpl import Code


def refused(call):
    """Whether there is no buffer to be had."""
    try:
        call()
    except BufferError:
        return True
    return False


@ranks(1, 2, 3, 4)
def test_parts(job):
    """Parts of other lengths at each rank, also of none: what one writes the others read behind a barrier."""
    world = job.world
    backwards = world.split(0, -world.rank)
    for comm in (world, backwards):
        me, n = comm.rank, comm.size
        for length in (lambda r: 1, lambda r: r, lambda r: 5 * (n - r), lambda r: (r == 1) * 1000, lambda r: 20_000 + r, lambda r: 0):
            before = [sum(map(length, range(r))) for r in range(n + 1)]
            with comm.shared_window(8 * length(me)) as window:
                assert len(window) == n and len(list(window)) == n
                assert [part.nbytes for part in window] == [8 * length(r) for r in range(n)]
                everything = np.frombuffer(window, "i8")
                assert len(everything) == before[n] and not everything.any()
                comm.barrier()
                part = window[me]
                assert not part.readonly and part.format == "B" and part.contiguous
                np.frombuffer(part, "i8")[:] = np.arange(length(me)) + 1000 * me
                comm.barrier()
                for r in range(n):
                    wanted = np.arange(length(r)) + 1000 * r
                    assert (np.frombuffer(window[r], "i8") == wanted).all()
                    assert (everything[before[r] : before[r + 1]] == wanted).all()
                comm.barrier()
                # Into another's part.
                right = (me + 1) % n
                if length(right):
                    window[right][-8:] = b"from%4d" % me
                comm.barrier()
                if length(me):
                    assert bytes(part[-8:]) == b"from%4d" % ((me - 1) % n)
                del everything, part
    # Again and again, in the same memory.
    for _ in range(200):
        backwards.shared_window(1 << 20).free()


@ranks(2, 3)
def test_messages_and_shapes(job):
    """Parts are buffers as any other: of messages, collective calls and arrays of two dimensions."""
    world, me, n = job.world, job.rank, job.size
    with world.shared_window(6 * 4 * 5) as window:
        grid = np.frombuffer(window[me], "f4").reshape(6, 5)
        grid[:] = me
        right, left = (me + 1) % n, (me - 1) % n
        with world.irecv(grid[:, 0], left):
            world.send(grid[:, 1], right)
        assert (grid[:, 0] == left).all() and (grid[:, 1:] == me).all()
        world.barrier()
        assert (np.frombuffer(window[right], "f4").reshape(6, 5)[:, 0] == me).all()
        world.barrier()
        world.allreduce(grid, "max")
        assert (grid[:, 1:] == n - 1).all()
        world.barrier()
        del grid


@ranks(1, 2, 4)
def test_views_and_ends(job):
    """Not given back under a view, and no view of what has been given back."""
    world, me, n = job.world, job.rank, job.size
    window = world.shared_window(64)
    assert repr(window) == f"<fmpl.SharedWindow: {n} parts, {64 * n} bytes together>"
    for rank in (-1, n, 1 << 40):
        try:
            window[rank]
        except IndexError:
            continue
        raise AssertionError("a part of nobody")
    numbers = np.frombuffer(window[me], "u8")
    some = window[0][8:16]
    assert "2 views" in str(fails(Code.BUSY, window.free))
    some.release()
    assert "1 views" in str(fails(Code.BUSY, window.free))
    fails(Code.BUSY, job.finalize)
    # Nothing has changed.
    numbers[:] = me
    world.barrier()
    assert window[n - 1][0] == n - 1
    del numbers
    try:
        some[0]
    except ValueError:
        pass
    else:
        raise AssertionError("a view that has been released")
    window.free()
    window.free()
    assert refused(lambda: window[0]) and refused(lambda: memoryview(window)) and refused(lambda: np.frombuffer(window, "u1"))
    assert len(window) == n
    # A view of one does not keep another.
    first, second = world.shared_window(8), world.shared_window(8)
    view = memoryview(first)
    second.free()
    view[8 * me : 8 * me + 8] = b"is there"
    view.release()
    world.barrier()
    assert bytes(first[n - 1]) == b"is there"
    # Left by an exception it is not freed, since the others may not come.
    try:
        with first:
            raise ZeroDivisionError
    except ZeroDivisionError:
        assert not refused(lambda: first[0])
    # Let go, it stays until the job ends, and so do its views.
    view = first[me]
    del first
    gc.collect()
    assert bytes(view) == b"is there"
    fails(Code.BUSY, job.finalize)
    del view
    kept = world.shared_window(8)
    job.finalize()
    assert refused(lambda: kept[0])
    fails(Code.INIT, kept.free)
    fails(Code.INIT, world.shared_window, 8)


@ranks(2, 3)
def test_what_is_refused(job):
    world, me = job.world, job.rank
    # Too much at one rank: all are told.
    fails(Code.MEMORY, world.shared_window, (1 << 62) if me == 0 else 1)
    try:
        world.shared_window(-1)
    except OverflowError:
        pass
    else:
        raise AssertionError("fewer bytes than none")
    # Each gives another one back: neither goes, and neither can be looked at any more.
    one, other = world.shared_window(8), world.shared_window(8)
    fails(Code.ARGUMENT, (one if me == 0 else other).free)
    assert refused(lambda: (one if me == 0 else other)[0])
    mine = (other if me == 0 else one)[me]
    mine[:] = b"a" * 8
    fresh = world.shared_window(64)
    assert not any(fresh[me])
    mine.release()
    fresh.free()
    # Its communicator has gone.
    part = world.dup()
    window = part.shared_window(8)
    part.free()
    fails(Code.COMM, window.free)
    fails(Code.COMM, part.shared_window, 8)


def test_a_view_at_the_end_of_the_program(tmp_path):
    text = "import fmpl\njob = fmpl.init()\nwindow = job.world.shared_window(8)\nview = window[0]\n"
    done = script(2, text, tmp_path)
    assert "views of loans and windows are alive" in done.stderr, done
    done = script(2, text + "del view\n", tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done


def test_on_several_nodes(tmp_path):
    """Refused at all ranks; those of each node can have one."""
    text = """
import fmpl
with fmpl.init() as job:
    try:
        job.world.shared_window(8)
    except fmpl.Error as error:
        print(error.code.name, "fmpl_comm_split_node" in str(error))
    with job.world.split_node() as node:
        with node.shared_window(8) as window:
            window[node.rank][0] = 7 + node.rank
            node.barrier()
            print([part[0] for part in window])
            node.barrier()
"""
    done = script(4, text, tmp_path, options=["--nodes", "2:cyclic"], FMPL_NETWORK="tcp")
    assert done.returncode == 0 and sorted(done.stdout.splitlines()) == ["COMM True"] * 4 + ["[7, 8]"] * 4, done


def test_a_rank_dies(tmp_path):
    """The others are told, whose parts can be looked at no more."""
    text = """
import fmpl, os, signal
job = fmpl.init()
world = job.world
window = world.shared_window(4096)
window[world.rank][:1] = b"x"
world.barrier()
if world.rank == 0:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    window.free()
except fmpl.Error as error:
    window.free()
    try:
        window[1]
    except BufferError:
        print(error.code.name, flush=True)
os._exit(0)
"""
    done = script(3, text, tmp_path, options=["--keep-going"])
    assert done.stdout.split() == ["PEER", "PEER"], done
