"""The names that `from mockube import ...` can import. They are imported on first use, so that commands start faster.

`__init__.pyi` declares the same names for type checkers.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

MODULES: Final[Mapping[str, str]] = {
    "AsyncCluster": "mockube.cluster",
    "Cluster": "mockube.cluster",
}


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module 'mockube' has no attribute {name!r}")
    return getattr(import_module(MODULES[name]), name)
