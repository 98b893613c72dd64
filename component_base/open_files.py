"""The limit of open files of the process: each connection is a file."""

import resource
from contextlib import suppress


def allow_many_files() -> None:
    """Raise the limit of open files to its maximum, as programs in Go do."""
    _, maximum = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # a sandbox may forbid it: the limit stays as it is
        resource.setrlimit(resource.RLIMIT_NOFILE, (maximum, maximum))
