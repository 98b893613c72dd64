"""Files that only their owner can read: keys, and kubeconfigs of the administrator."""

import os
from pathlib import Path
from tempfile import mkstemp


def write_private(path: Path, data: bytes) -> None:
    """Write a file with mode 0600 atomically: a reader gets the complete old content or the complete new content.

    The name of the temporary file is unpredictable, because other users may be able to write to the folder.
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
