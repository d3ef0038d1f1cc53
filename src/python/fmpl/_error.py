"""Errors."""

import enum


class Code(enum.IntEnum):
    """What went wrong; the numbers are those of the C interface (``FMPL_ERR_*``)."""

    INIT = 1
    BUSY = 2
    INDEX = 3
    RANK = 4
    COMM = 5
    ARGUMENT = 6
    TRUNCATE = 7
    SPOOL_FULL = 8
    PENDING = 9
    PEER = 10
    FORK = 11
    MEMORY = 12
    SYSTEM = 13
    LAUNCH = 14
    REQUEST = 15
    DEADLOCK = 16
    SETTING = 17
    VERSION = 18
    UNSUPPORTED = 19


class Error(Exception):
    """An error of the library. Its text says what was being done, with which rank and index, why it failed, and what to do.

    ``code`` is a `Code`; ``rank`` this process's rank in the communicator of the call, ``peer`` and ``index`` what the call named; None
    where there is none.
    """

    def __init__(self, code, text, rank=None, peer=None, index=None):
        super().__init__(text)
        try:
            self.code = Code(code)
        except ValueError:
            # Of a newer library.
            self.code = code
        self.rank = rank
        self.peer = peer
        self.index = index

    def __reduce__(self):
        return (type(self), (int(self.code), str(self), self.rank, self.peer, self.index))
