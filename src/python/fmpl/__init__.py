"""Message passing by remote memory writes, matched at the sender.

    import fmpl, numpy

    with fmpl.init() as job:
        world = job.world
        numbers = numpy.full(3, world.rank, dtype="f8")
        if world.rank == 0:
            world.send(numbers, 1)
        elif world.rank == 1:
            world.recv(numbers, 0)
            print(numbers)

``fmpl run -n 2 python app.py`` starts it on two ranks. `Job.world` has the calls (`Comm`), `Comm.irecv` and the like give requests
(`Request`), `Job.loan` and `Comm.recv_loan` messages that are handed over (`Loan`), `Comm.shared_window` memory that the ranks of a
node have side by side (`SharedWindow`); ``await`` on a request is in `fmpl.aio`.
"""

import atexit as _atexit
import gc as _gc
import os as _os
import sys as _sys

from ._error import Code, Error
from ._fmpl import (
    Comm,
    Job,
    Loan,
    Received,
    Request,
    SharedWindow,
    __version__,
    create_id,
    init,
    init_id,
    initialized,
    wait_any,
    wtime,
)
from ._fmpl import _leave

__all__ = [
    "Code",
    "Comm",
    "Error",
    "Job",
    "Loan",
    "Received",
    "Request",
    "SharedWindow",
    "__version__",
    "create_id",
    "init",
    "init_id",
    "initialized",
    "wait_all",
    "wait_any",
    "wtime",
]


def wait_all(requests):
    """Waits until all requests are over, whatever becomes of each, and gives what came with each (`Received`, or None).

    The first error is raised when all are over.
    """
    received, first = [], None
    for request in list(requests):
        try:
            received.append(request.wait())
        except Error as error:
            received.append(None)
            first = first or error
    if first is not None:
        raise first
    return received


_process = _os.getpid()


def _at_exit():
    if _os.getpid() != _process or not initialized():
        return
    # After an unhandled exception the others are not waited for: they may wait for what this rank will never send. The process leaves the
    # job by its end, and they are told.
    normal = getattr(_sys, "last_exc", None) is None and getattr(_sys, "last_type", None) is None
    _gc.collect()
    try:
        _leave(normal)
    except Error as error:
        print(f"fmpl: at the end of the process: {error}", file=_sys.stderr)


_atexit.register(_at_exit)
