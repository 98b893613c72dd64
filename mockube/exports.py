"""The names that `from mockube import ...` can import. They are imported on first use, so that commands start faster.

`__init__.pyi` declares the same names for type checkers.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from mockube.component_base.operating_system import check_system

_MODULES_WITH_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "mockube.apimachinery.status": ("AlreadyExists", "ApiError", "Conflict", "Forbidden", "Invalid", "NotFound"),
    "mockube.cluster": ("AsyncCluster", "AsyncForkedCluster", "Cluster", "ForkedCluster", "NotStarted"),
    "mockube.connection": ("AsyncConnection", "Connection", "connect"),
    "mockube.exploration.api": ("explore", "replay_finding"),
    "mockube.objects.errors": ("KindNotServed", "WaitFailed"),
    "mockube.objects.exec": ("ExecResult",),
}  # fmt: skip
MODULES: Final[Mapping[str, str]] = {
    name: module for module, names in _MODULES_WITH_NAMES.items() for name in names
}


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module 'mockube' has no attribute {name!r}")
    check_system()
    return getattr(import_module(MODULES[name]), name)
