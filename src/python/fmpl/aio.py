"""Requests in asyncio: ``received = await comm.irecv(buf, src)``.

The event loop watches the library's event descriptor beside its other descriptors. There is one descriptor for the process, so await in the
event loop of one thread. It tells of messages; collective requests are looked at every so often beside it.

One task at a time awaits a request. A task that is cancelled withdraws its receive; anything else goes on, and can be awaited again.
"""

import asyncio
import os

from . import _fmpl

# Nobody rings when the time-out of a send passes (10 ms without `set_send_buffer`), nor for a request that began before the descriptor was there:
# these are looked at by the clock. The rest, too, but rarely: should another reader have taken the ring.
_SOON, _RARELY = 0.002, 0.05

_readers = {}


class _Reader:
    """The requests that the tasks of a loop wait for."""

    def __init__(self, loop, fd, life):
        # The end of the job closes the descriptor, and one that is closed cannot be taken from the loop: so it is a duplicate.
        self.loop, self.fd, self.life, self.waiting, self.timer = loop, os.dup(fd), life, {}, None
        os.set_blocking(self.fd, False)
        loop.add_reader(self.fd, self.ready)

    def add(self, request, soon):
        if request in self.waiting:
            raise RuntimeError("another task awaits this request")
        future = self.loop.create_future()
        self.waiting[request] = (future, soon)
        self.set_timer(soon)
        return future

    def remove(self, request, future):
        if self.waiting.get(request, (None,))[0] is future:
            del self.waiting[request]

    def ready(self):
        # Drained before the look: what completes afterwards makes it readable again.
        try:
            os.read(self.fd, 8)
        except BlockingIOError:
            pass
        self.look()

    def look(self):
        for request, (future, _) in list(self.waiting.items()):
            # Its task removes it when it comes to know.
            if future.done():
                continue
            try:
                over = request.test()
            except BaseException as error:
                future.set_exception(error)
            else:
                if over:
                    future.set_result(request.received)

    def set_timer(self, soon):
        if self.timer is None or soon and not self.timer_is_soon:
            if self.timer is not None:
                self.timer.cancel()
            self.timer_is_soon = soon
            self.timer = self.loop.call_later(_SOON if soon else _RARELY, self.tick)

    def tick(self):
        self.timer = None
        self.look()
        if self.waiting:
            self.set_timer(any(soon for _, soon in self.waiting.values()))
        else:
            self.close()

    def close(self):
        if _readers.get(self.loop) is self:
            del _readers[self.loop]
        if self.fd is None:
            return
        if not self.loop.is_closed():
            self.loop.remove_reader(self.fd)
        os.close(self.fd)
        self.fd = None


# The life of the job of which a descriptor was made.
_started = None


def _event_fd():
    """The descriptor, and whether requests that are open ring it."""
    global _started
    rings = _started == _fmpl._generation()
    fd = _fmpl._event_fd()
    _started = _fmpl._generation()
    return fd, rings


async def wait(request):
    """Waits for a request in a task: what came (`Received`), or None for what is no receive. ``await request`` is the same."""
    if request.test():
        return request.received
    loop = asyncio.get_running_loop()
    fd, rings = _event_fd()
    reader = _readers.get(loop)
    if reader is not None and reader.life != _started:
        # Of a descriptor that the end of its job has closed.
        reader.close()
        reader = None
    if reader is None:
        for closed in [other for other in _readers.values() if other.loop.is_closed()]:
            closed.close()
        reader = _readers[loop] = _Reader(loop, fd, _started)
    future = reader.add(request, request._is_send or not rings)
    try:
        return await future
    except asyncio.CancelledError:
        try:
            if request._is_receive and not request.cancel() and not request.done:
                # Its message is on its way into the buffer, which is its owner's again when that is over.
                request.wait()
        except Exception:
            # The receive's own error, which nobody asks for any more.
            pass
        raise
    finally:
        reader.remove(request, future)
