"""A temporary folder that only the process that made it removes."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """Yield a new folder, which is removed at the end of the block.

    A `TemporaryDirectory` is also removed when a process that was forked during the block exits.
    """
    folder, owner = Path(mkdtemp(prefix=prefix)), os.getpid()
    try:
        yield folder
    finally:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)
