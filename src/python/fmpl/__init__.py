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
node have side by side (`SharedWindow`), `Job.global_memory` memory that all ranks read and write (`Global`); ``await`` on a request is in `fmpl.aio`.
"""

import atexit as _atexit
import gc as _gc
import os as _os
import sys as _sys

from ._counter import Counter
from ._error import Code, Error
from ._fmpl import (
    Comm,
    Global,
    Job,
    Loan,
    LoanRequest,
    Operation,
    Received,
    Registration,
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
    "Counter",
    "Error",
    "Global",
    "Job",
    "Loan",
    "LoanRequest",
    "Operation",
    "Received",
    "Registration",
    "Request",
    "SharedWindow",
    "__version__",
    "create_id",
    "init",
    "init_id",
    "initialized",
    "test_all",
    "wait_all",
    "wait_any",
    "wait_some",
    "wtime",
]


def wait_all(requests):
    """Waits until all requests are over, whatever becomes of each, and gives what came with each (`Received`, or None).

    The first error is raised when all are over.
    """
    requests = list(requests)
    failed = _take(requests)
    received, first = [], None
    for request in requests:
        try:
            received.append(request.wait())
            error = failed.get(request)
        except Error as caught:
            received.append(None)
            error = caught
        first = first or error
    if first is not None:
        raise first
    return received


def _take(requests):
    """Completes those whose messages this process has to take, as they come: their senders may wait for that. The errors of those that failed."""
    left, failed = [request for request in dict.fromkeys(requests) if request._is_taken and not request.done], {}
    while left:
        error = None
        try:
            wait_any(left)
        except Error as caught:
            error = caught
        over = [request for request in left if request.done]
        # Another thread has one, or the job has ended: that is told of each.
        if not over:
            break
        if error is not None:
            failed[over[0]] = error
        left = [request for request in left if not request.done]
    return failed


def test_all(requests):
    """Completes those of several requests that need no waiting; whether that leaves none. The first error is raised when all were looked at."""
    over, first = True, None
    for request in list(requests):
        try:
            over = request.test() and over
        except Error as error:
            first = first or error
    if first is not None:
        raise first
    return over


def wait_some(requests):
    """Waits until one of several requests is over, and gives the places of all that this call has found to be; none: all were over already.

    The first error is raised when all were looked at; `Request.done` tells which of them are over.
    """
    requests = list(requests)
    open_before = [not request.done for request in requests]
    first = None
    try:
        wait_any(requests)
    except Error as error:
        first = error
    for request in requests:
        try:
            request.test()
        except Error as error:
            first = first or error
    if first is not None:
        raise first
    return [at for at, request in enumerate(requests) if open_before[at] and request.done]


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
