"""Beginnings and ends: of jobs, of processes, of children and peers."""

import time

import pytest
from jobs import ranks, run, script

import fmpl
from fmpl import Code


@ranks(1, 2)
def test_objects_of_a_job_end_with_it(job):
    from test_messages import fails

    world = job.world
    again = fmpl.init(4)
    assert again.world.size == world.size and fmpl.initialized()
    again.finalize()
    again.finalize()
    part = world.split(0)
    loan = job.loan(100)
    job.finalize()
    assert not fmpl.initialized()
    for call in (world.barrier, part.barrier, part.free, world.dup, lambda: world.send(b"", 0), lambda: job.loan(1)):
        fails(Code.INIT, call)
    try:
        memoryview(loan)
    except BufferError:
        pass
    else:
        raise AssertionError("a loan outlived its job")
    del part, loan
    with fmpl.init(8) as second:
        second.world.barrier()
        fails(Code.INIT, world.barrier)
        right = (second.rank + 1) % second.size
        with second.world.irecv(bytearray(1), (second.rank - 1) % second.size):
            second.world.send(b"x", right)


def test_two_threads_finalize(tmp_path):
    """One of them is the last, and ends the job; it may be told that the other is still at it."""
    done = script(
        2,
        """
import threading, fmpl

def end(job):
    together.wait()
    while True:
        try:
            return job.finalize()
        except fmpl.Error as error:
            assert error.code == fmpl.Code.BUSY, error

for turn in range(20):
    life = fmpl._fmpl._generation()
    jobs = [fmpl.init(), fmpl.init()]
    together = threading.Barrier(2)
    threads = [threading.Thread(target=end, args=(job,)) for job in jobs]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert not fmpl.initialized() and fmpl._fmpl._generation() == life + 1
print("ended")
""",
        tmp_path,
    )
    assert done.returncode == 0 and done.stdout.count("ended") == 2, f"{done.stdout}\n{done.stderr}"


def test_without_finalize(tmp_path):
    """The end of the program finalizes, as does that of one with loans and requests that nobody has completed."""
    text = """
import fmpl
job = fmpl.init()
world = job.world
world.send(b"x" * 1000, (world.rank + 1) % world.size)
if world.rank == 0:
    import time
    time.sleep(0.2)
world.recv(bytearray(1000), (world.rank - 1) % world.size)
loan = job.loan(1000)
"""
    done = script(2, text, tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    done = script(2, text + "\nimport numpy\nview = numpy.frombuffer(loan, 'u1')\n", tmp_path)
    assert "views of loans and windows are alive" in done.stderr


def test_a_job_of_one_without_a_launcher(tmp_path):
    import subprocess
    import sys

    program = tmp_path / "one.py"
    program.write_text("import fmpl\nwith fmpl.init() as job:\n    print(job, job.world.size)\n")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "<fmpl.Job: rank 0 of 1> 1\n" and done.returncode == 0, done


def test_an_exception_ends_the_job(tmp_path):
    """Others wait for what never comes; they are not left waiting."""
    text = """
import fmpl, sys
{begin}
    if job.rank == 1:
        raise ZeroDivisionError("here")
    job.world.recv(bytearray(1), 1)
"""
    for begin in ("with fmpl.init() as job:", "job = fmpl.init()\nif True:"):
        since = time.monotonic()
        done = script(2, text.format(begin=begin), tmp_path)
        assert done.returncode != 0 and "ZeroDivisionError: here" in done.stderr, done
        assert time.monotonic() - since < 60


def test_daemon_threads_in_calls_at_the_end(tmp_path):
    text = """
import fmpl, threading, time
job = fmpl.init()
requests = [job.world.irecv(bytearray(10), 1 - job.rank, k) for k in (5,)]
for k in range(3):
    threading.Thread(target=job.world.recv, args=(bytearray(10), 1 - job.rank, k), daemon=True).start()
threading.Thread(target=requests[0].wait, daemon=True).start()
threading.Thread(target=job.world.recv_any, args=(bytearray(10), 0), daemon=True).start()
time.sleep(0.3)
print("done")
"""
    done = script(2, text, tmp_path)
    assert done.stdout.count("done") == 2 and done.returncode in (0, 1) and "Fatal" not in done.stderr, done


def test_a_forked_child(tmp_path):
    """It can use nothing, and harms nothing: not by what it drops, nor by its end."""
    text = """
import fmpl, os, sys
with fmpl.init() as job:
    world = job.world
    buffer = bytearray(8)
    request = world.irecv(buffer, 1 - world.rank)
    loan, part = job.loan(100), world.dup()
    child = os.fork()
    if child == 0:
        for call in (world.barrier, request.wait, lambda: world.send(b"", 0), lambda: job.loan(1), world.dup):
            try:
                call()
            except fmpl.Error as error:
                assert error.code == fmpl.Code.FORK, error
            else:
                os._exit(3)
        del request, loan, part
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    world.send(b"from you", 1 - world.rank)
    request.wait()
    assert buffer == b"from you"
    world.barrier()
    part.barrier()
"""
    done = script(2, text, tmp_path)
    assert done.returncode == 0, done


def test_the_death_of_a_peer_is_told(tmp_path):
    text = """
import fmpl, os, sys
job = fmpl.init()
if job.rank == 1:
    job.world.recv(bytearray(1), 0)
    os.kill(os.getpid(), 9)
job.world.send(b"x", 1)
for call in (lambda: job.world.recv(bytearray(1), 1, 2), job.world.barrier):
    try:
        call()
    except fmpl.Error as error:
        print(error.code.name, error.peer, error.index, error, file=sys.stderr, flush=True)
os._exit(5)
"""
    done = script(2, text, tmp_path, options=["--keep-going"])
    assert "PEER 1 2" in done.stderr and done.stderr.count("PEER") == 2, done


def test_abort(tmp_path):
    text = "import fmpl\njob = fmpl.init()\nif job.rank == 1: job.abort(7)\njob.world.recv(bytearray(1), 1)\n"
    assert script(2, text, tmp_path).returncode == 7


def test_identifiers(tmp_path):
    """Ranks that no launcher has started."""
    import subprocess
    import sys

    program = tmp_path / "outside.py"
    program.write_text(
        """
import fmpl, subprocess, sys
rank = int(sys.argv[1])
if rank == 0:
    id = fmpl.create_id()
    child = subprocess.Popen([sys.executable, __file__, "1", id.hex()])
else:
    id = bytes.fromhex(sys.argv[2])
with fmpl.init_id(id, rank, 2, 8) as job:
    job.world.send(b"%d" % rank, 1 - rank)
    assert job.world.recv_bytes(1 - rank) == b"%d" % (1 - rank)
if rank == 0:
    assert child.wait() == 0
    print("both")
"""
    )
    done = subprocess.run([sys.executable, program, "0"], capture_output=True, text=True, timeout=120)
    assert done.stdout == "both\n" and done.returncode == 0, done
    with pytest.raises(ValueError):
        fmpl.init_id(b"short", 0, 1)


def test_the_command_is_there():
    import subprocess
    import sys

    done = subprocess.run([sys.executable, "-m", "fmpl", "--version"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "fmpl" in done.stdout, done
    assert run(1, sys.executable, "-c", "import fmpl").returncode == 0
