"""What `from mockube import ...` gives, imported on first use: the command line starts without it.

`__init__.pyi` has the same for type checkers.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

HOMES: Final[Mapping[str, str]] = {
    "AsyncCluster": "mockube.cluster",
    "Cluster": "mockube.cluster",
}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'mockube' has no attribute {name!r}")
    return getattr(import_module(HOMES[name]), name)
