"""The logs of both programs in one process: each record is in the file in which it is with two processes."""

import logging
from typing import Final, TextIO

from mockube.component_base import klog

_MANAGER_PACKAGES: Final = tuple(
    f"mockube.{name}."
    for name in ("client", "container_runtime", "controller_manager", "kubelet", "publisher", "scheduler")
)


def attach(server: klog.Logging, manager: klog.Logging, manager_stream: TextIO) -> None:
    """Write the records of the API server to stderr, and those of the manager to a stream."""
    root = logging.getLogger()
    klog.attach(root, server)
    root.handlers[0].addFilter(lambda record: not is_of_manager(record))
    handler = klog.new_handler(manager, manager_stream)
    handler.addFilter(is_of_manager)
    root.addHandler(handler)


def is_of_manager(record: logging.LogRecord) -> bool:
    return record.name.startswith(_MANAGER_PACKAGES)
