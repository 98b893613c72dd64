"""What one control plane complains of: the warnings and errors that are logged in its thread.

Whoever else listens to the same loggers hears them as before.
"""

import logging
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from mockube.apimachinery.klog import KlogFormatter

KEPT: Final = 200
LOGGERS: Final = ("mockube.apiserver", "mockube.controller_manager", "mockube.etcd")


class CapturedLog(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._thread = threading.get_ident()
        self._records: deque[logging.LogRecord] = deque(maxlen=KEPT)
        self.setFormatter(KlogFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread:
            self._records.append(record)

    def lines(self) -> Sequence[str]:
        return [self.format(record) for record in [*self._records]]


@contextmanager
def capture_log() -> Iterator[CapturedLog]:
    """Of the thread in which it is opened."""
    made = CapturedLog()
    loggers = [logging.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        logger.addHandler(made)
    try:
        yield made
    finally:
        for logger in loggers:
            logger.removeHandler(made)
        made.close()
