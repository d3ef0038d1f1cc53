"""Messages: what arrives, in which buffers, and what is refused."""

import array

import numpy as np
from jobs import ranks

import fmpl
from fmpl import Code


def fails(code, call, *args, **options):
    """The error of a call that must fail so."""
    try:
        call(*args, **options)
    except fmpl.Error as error:
        assert error.code == code, error
        return error
    raise AssertionError(f"no error, where {code!r} was awaited")


SIZES = [0, 1, 8, 16, 17, 72, 73, 1000, 1024, 4096, 4097, 100_000, 3_000_000]


def pattern(n, seed):
    return (np.arange(n, dtype="u8") * 2654435761 + seed >> 7).astype("u1")


@ranks(2, 3)
def test_sizes(job):
    world = job.world
    right, left = (world.rank + 1) % world.size, (world.rank - 1) % world.size
    for seed, n in enumerate(SIZES):
        arriving = np.zeros(n + 3, "u1")
        got = world.sendrecv(pattern(n, seed + world.rank), right, arriving, left, 5, 5)
        assert (got.source, got.index, got.nbytes, got.len) == (left, 5, n, n)
        assert (arriving[:n] == pattern(n, seed + left)).all() and not arriving[n:].any()
    for seed, n in enumerate(SIZES):
        if world.rank == 0:
            world.send(pattern(n, seed), 1)
        elif world.rank == 1:
            arriving = np.zeros(n, "u1")
            assert world.recv(arriving, 0).nbytes == n
            assert (arriving == pattern(n, seed)).all()


@ranks(2)
def test_kinds_of_buffers(job):
    world = job.world
    text = b"sixteen bytes, a"
    sources = [
        text,
        bytearray(text),
        memoryview(text),
        array.array("q", text),
        np.frombuffer(text, "f4").reshape(2, 2),
        np.asfortranarray(np.frombuffer(text, "u1").reshape(4, 4).T),
        np.frombuffer(text, "c16")[0],
    ]
    makers = [
        lambda: bytearray(16),
        lambda: memoryview(bytearray(16)),
        lambda: array.array("i", bytes(16)),
        lambda: np.zeros((2, 2), "f4"),
        lambda: np.zeros((4, 4), "u1", order="F"),
        lambda: np.zeros((), "c16"),
    ]
    for source in sources:
        for make in makers:
            if world.rank == 0:
                world.send(source, 1)
            else:
                buffer = make()
                world.recv(buffer, 0)
                got = buffer.tobytes("A") if isinstance(buffer, np.ndarray) else bytes(buffer)
                assert got == text, (got, buffer)


@ranks(2)
def test_evenly_spaced(job):
    """Columns, every other element, backwards, sub-matrices: without a copy, and the two sides may lie differently."""
    world = job.world
    matrix = np.arange(2000, dtype="f8").reshape(40, 50)
    cube = np.arange(4 * 6 * 8, dtype="i4").reshape(4, 6, 8)
    shapes = [
        matrix[:, 7],
        matrix[::2],
        matrix[5:20, 10:30],
        matrix[3, ::-1],
        matrix[::-1, 4],
        matrix.reshape(-1)[::3],
        cube[:, :, 2],
        cube[1, 2:5, 1:7:1],
        matrix[4:5, ::5],
    ]
    for shape in shapes:
        flat = np.ascontiguousarray(shape)
        if world.rank == 0:
            world.send(shape, 1)
            world.send(flat, 1)
        else:
            plain = np.zeros_like(flat)
            assert world.recv(plain, 0).len == flat.size
            assert (plain == flat).all()
            # The same places of another array, and nothing beside them.
            whole = np.zeros((matrix if shape.dtype == "f8" else cube).shape, shape.dtype)
            there = np.lib.stride_tricks.as_strided(whole, shape.shape, shape.strides)
            if (np.array(shape.strides) < 0).any():
                whole = np.zeros(shape.size * 3, shape.dtype)
                there = whole[::-2][: shape.size]
            world.recv(there, 0)
            assert (there.reshape(shape.shape) == flat).all() and np.count_nonzero(whole) == np.count_nonzero(flat)
    crooked = cube[:, 0:3:2, 1:4]
    error = fails(Code.ARGUMENT, world.send, crooked, 1 - world.rank)
    assert "evenly spaced" in str(error)
    heap = np.zeros(8, "u1")
    overlaid = np.lib.stride_tricks.as_strided(heap, (3, 4), (2, 1))
    fails(Code.ARGUMENT, world.recv, overlaid, 1 - world.rank)


@ranks(2)
def test_within_one_array(job):
    """Both ways at once between columns, which lie between each other without a byte in common."""
    world, other = job.world, 1 - job.rank
    matrix = np.arange(200.0).reshape(20, 10) + 1000 * world.rank
    theirs = matrix + 1000 * (other - world.rank)
    assert world.sendrecv(matrix[:, 0], other, matrix[:, 9], other).len == 20
    assert (matrix[:, 9] == theirs[:, 0]).all()
    world.sendrecv(matrix[:, 1:3], other, matrix[::-1, 4:6], other)
    assert (matrix[::-1, 4:6] == theirs[:, 1:3]).all()
    world.sendrecv(matrix[::2, 0], other, matrix[1::2, 0], other)
    assert (matrix[1::2, 0] == theirs[::2, 0]).all()
    world.sendrecv(matrix[:10, 3], other, matrix[10:, 3], other)
    assert (matrix[10:, 3] == theirs[:10, 3]).all()
    row = matrix[0].copy()
    world.sendrecv(row[4::-1], other, row[5:], other)
    overlapping = [
        (matrix[:, 0], matrix[:, 0]),
        (matrix[:, 2:4], matrix[:, 3]),
        (matrix[:, 3], matrix[::-1, 2:4]),
        (matrix[:11, 3], matrix[10:, 3]),
        (row[:6], row[5:]),
        (row[5::-1], row[::-1]),
    ]
    for sent, received in overlapping:
        fails(Code.ARGUMENT, world.sendrecv, sent, other, received, other)
        fails(Code.ARGUMENT, world.sendrecv, received, other, sent, other)


@ranks(2)
def test_objects_are_refused(job):
    """Their addresses are no message."""
    world, other = job.world, 1 - job.rank
    things = np.array([None, "a", 3], object)
    fields = np.zeros(2, [("Offset", "f8"), ("what", "O")])
    for buffer in (things, fields, fields["what"]):
        for call in (world.send, world.isend, world.send_any, world.recv, world.irecv):
            assert "object" in str(fails(Code.ARGUMENT, call, buffer, other))
        fails(Code.ARGUMENT, world.bcast, buffer)
        fails(Code.ARGUMENT, world.allreduce, buffer)
        fails(Code.ARGUMENT, world.sendrecv, buffer, other, bytearray(100), other)
    # A name is none.
    plain = np.ones(2, [("Offset", "f8"), ("O", "i4")])
    got = np.zeros_like(plain)
    world.sendrecv(plain, other, got, other)
    assert (got == plain).all()
    # Of these NumPy gives no buffer; their numbers are one.
    days = np.arange(3).astype("M8[D]")
    try:
        world.send(days, other)
    except ValueError:
        pass
    else:
        raise AssertionError("a buffer of datetime64")
    there = np.zeros(3, "M8[D]")
    world.sendrecv(days.view("i8"), other, there.view("i8"), other)
    assert (there == days).all()


@ranks(2)
def test_errors_name_whom(job):
    world, other = job.world, 1 - job.rank
    error = fails(Code.RANK, world.send, b"", 7, 3)
    assert (error.rank, error.peer, error.index) == (world.rank, 7, 3) and "7" in str(error)
    for peer in (-1, -2, -5):
        error = fails(Code.RANK, world.send, b"", peer)
        assert f"peer {peer}" in str(error) and error.rank == world.rank
        assert f"peer {peer}" in str(fails(Code.RANK, world.irecv, bytearray(1), peer))
    fails(Code.INDEX, world.send, b"", other, 64)
    for index in (-1, -5):
        assert fails(Code.INDEX, world.recv, bytearray(1), other, index).peer == other
        error = fails(Code.INDEX, world.irecv, bytearray(1), other, index)
        assert error.peer == other and f"index {index}" in str(error)
    for wrong in (b"read only", np.frombuffer(b"too", "u1")):
        try:
            world.recv(wrong, other)
        except (BufferError, ValueError):
            pass
        else:
            raise AssertionError("received into memory that may only be read")
    for no_buffer in (3, "text", None, [1, 2]):
        try:
            world.send(no_buffer, other)
        except TypeError:
            pass
        else:
            raise AssertionError("sent what is no buffer")
    whole = bytearray(16)
    fails(Code.ARGUMENT, world.sendrecv, memoryview(whole)[:9], other, memoryview(whole)[8:], other)
    whole.append(1)  # nothing is exported any more


@ranks(2)
def test_truncated(job):
    world = job.world
    if world.rank == 0:
        for n in (8, 100, 50_000):
            world.send(pattern(n, n), 1, 2)
        world.send(b"behind", 1, 2)
    else:
        for n in (8, 100, 50_000):
            short = np.zeros(n - 3, "u1")
            error = fails(Code.TRUNCATE, world.recv, short, 0, 2)
            assert (error.peer, error.index) == (0, 2) and (short == pattern(n, n)[: n - 3]).all()
        rest = bytearray(6)
        world.recv(rest, 0, 2)
        assert rest == b"behind"


@ranks(2)
def test_probe_and_any_index(job):
    world = job.world
    if world.rank == 0:
        assert world.probe(1, 9) is None
        world.barrier()
        world.barrier()
        assert world.probe(1, 9) == 5
        buffer = bytearray(10)
        got = world.recv_any_index(buffer, 1)
        assert (got.index, got.source, bytes(buffer[: got.nbytes])) == (9, 1, b"hello")
        with world.irecv_any_index(buffer, 1) as request:
            fails(Code.BUSY, world.recv, bytearray(1), 1, 3)
            world.barrier()
        assert (request.received.index, request.received.nbytes) == (4, 2)
    else:
        world.barrier()
        world.send(b"hello", 0, 9)
        world.barrier()
        world.barrier()
        world.send(b"ho", 0, 4)


@ranks(2, 4)
def test_any_source(job):
    world = job.world
    if world.rank == 0:
        seen = {}
        buffer = np.zeros(20_000, "i4")
        for k in range(10 * (world.size - 1)):
            if k % 2:
                got = world.recv_any(buffer, 1)
            else:
                with world.irecv_any(buffer, 1) as request:
                    pass
                got = request.received
            number = seen[got.source] = seen.get(got.source, -1) + 1
            length = 2000 * number + 1
            assert got.len == length and (buffer[:length] == number + 100 * got.source).all()
        assert seen == {rank: 9 for rank in range(1, world.size)}
        assert world.probe_any(1) is None
    else:
        for k in range(10):
            numbers = np.full(2000 * k + 1, k + 100 * world.rank, "i4")
            if k % 2:
                world.send_any(numbers, 0, 1)
            else:
                world.isend_any(numbers, 0, 1).wait()


@ranks(2, 4)
def test_a_task_or_a_multicast(job):
    world = job.world
    if world.rank == 0:
        for worker in range(1, world.size):
            world.send_any(np.array([worker]), worker)
        world.mcast(np.arange(5000), range(world.size))
        fails(fmpl.Code.RANK, world.mcast, b"x", [64])
        fails(fmpl.Code.ARGUMENT, world.mcast, b"x", [])
    buffer, multicasts = np.zeros(5000, "i8"), 0
    for _ in range(1 if world.rank == 0 else 2):
        got, is_multicast = world.recv_any_or_mcast(buffer)
        assert got.source == 0 and got.index == (-1 if is_multicast else 0)
        if is_multicast:
            assert got.len == 5000 and (buffer == np.arange(5000)).all()
        else:
            assert got.len == 1 and buffer[0] == world.rank
        multicasts += is_multicast
    assert multicasts == 1


@ranks(1, 2)
def test_nobody(job):
    world = job.world
    world.send(b"away", None)
    got = world.recv(bytearray(4), None)
    assert (got.source, got.nbytes) == (None, 0)
    assert world.irecv(bytearray(4), None).wait().nbytes == 0
    world.isend(b"", None).wait()
    assert world.recv_bytes(None) == b""


@ranks(2)
def test_objects_and_bytes(job):
    world, other = job.world, 1 - job.rank
    things = [None, {"a": [1, 2.5, "three"]}, np.arange(100_000), "x" * 10_000]
    for index, thing in enumerate(things):
        if world.rank == 0:
            world.send_object(thing, other, index)
            world.send(b"%d bytes" % index, other, index)
        else:
            got = world.recv_object(other, index)
            assert (got == thing).all() if isinstance(thing, np.ndarray) else got == thing
            assert world.recv_bytes(other, index) == b"%d bytes" % index


@ranks(2)
def test_modes(job):
    world = job.world
    if world.rank == 0:
        world.set_send_buffer(1 << 20, "buffered")
        fails(Code.SPOOL_FULL, world.send, bytes(4 << 20), 1)
        world.set_send_buffer(1 << 20, "synchronous")
        request = world.isend(bytes(1 << 20), 1)
        assert not request.test()
        world.send(b"now", 1, 1)
        request.wait()
        world.set_send_buffer(16 << 20, 10)
        job.set_send_buffer(16 << 20, 10)
        assert world.sendbuf_check()[1] == 0
    else:
        world.recv(bytearray(3), 0, 1)
        world.recv(bytearray(1 << 20), 0)
    for wrong in ("quick", None, 1.5):
        try:
            world.set_send_buffer(1, wrong)
        except ValueError:
            pass
        else:
            raise AssertionError(wrong)
