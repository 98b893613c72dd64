"""Files for nobody else's eyes: keys, and what leads to a cluster as its administrator."""

import os
from pathlib import Path


def write_private(path: Path, data: bytes) -> None:
    """A reader finds the old one or the new one, whole."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
    temporary.replace(path)
