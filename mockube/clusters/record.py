"""The record of a running cluster, for commands in other terminals.

The process that runs the cluster writes it, and removes it at the end. If there is a record and the cluster is not locked, that
process was killed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from mockube.apiserver.pki.private import write_private
from mockube.clusters.folders import ClusterFolder

MEMORY: Final = "memory"


class Component(msgspec.Struct, frozen=True, kw_only=True):
    pid: int
    """0 while it does not run."""
    restarts: int = 0


class Record(msgspec.Struct, frozen=True, kw_only=True):
    pid: int
    version: str
    started: str
    detached: bool
    nodes: int
    packs: str
    store: str
    """`MEMORY`, the folder, or the addresses of the etcd."""
    flags: tuple[str, ...] = ()
    """Those that were given for the two processes."""
    ready: bool = False
    url: str = ""
    """Once it is ready."""
    resets: int = 0
    components: Mapping[str, Component] = {}


def write(folder: ClusterFolder, record: Record) -> None:
    write_private(folder.record, msgspec.json.encode(record))


def read(path: Path) -> Record | None:
    """None if there is none, or none that makes sense."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Record)
    except (FileNotFoundError, msgspec.DecodeError):
        return None
