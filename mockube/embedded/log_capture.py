"""Capture of the warnings and errors that one control plane logs, which are those of its thread.

Other handlers of the same loggers get the records too.
"""

import logging
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from mockube.component_base.klog import KlogFormatter

MAX_RECORDS: Final = 200
LOGGERS: Final = ("mockube.apiserver", "mockube.controller_manager", "mockube.etcd")


class CapturedLog(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._thread = threading.get_ident()
        self._records: deque[logging.LogRecord] = deque(maxlen=MAX_RECORDS)
        self.setFormatter(KlogFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread:
            self._records.append(record)

    def lines(self) -> Sequence[str]:
        return [self.format(record) for record in [*self._records]]


@contextmanager
def capture_log() -> Iterator[CapturedLog]:
    """Capture the log of the current thread during the block."""
    handler = CapturedLog()
    loggers = [logging.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield handler
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
        handler.close()
