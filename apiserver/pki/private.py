"""Files that only their owner can read: keys, and kubeconfigs of the administrator."""

import os
from pathlib import Path
from tempfile import mkstemp


def write_private(path: Path, data: bytes) -> None:
    """Write a file with mode 0600; a reader finds the old one or the new one, whole.

    What is written first has a name that cannot be taken in advance, as one could in a folder that others may write to.
    """
    descriptor, name = mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
