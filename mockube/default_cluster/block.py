"""`as_default`: a block in which a cluster is the default of the whole process, with all its threads and child processes.

Blocks may be nested, and may end in another order than they began, as those of several threads do: the default is that of the
block that began last. After the last block everything is as before the first.
"""

import os
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from types import ModuleType, TracebackType
from typing import Any, Final

from mockube.launch import IN_CLUSTER_VARIABLES, KUBECONFIG_VARIABLES

from .imports import ImportWatcher
from .libraries import LIBRARIES, Setting, loaded_servers, settings_of
from .refused_servers import RefusedServers, own_servers
from .target import Address, Target, address_of


class DefaultCluster(AbstractContextManager[None], AbstractAsyncContextManager[None]):
    """A block, synchronous or not, in which a cluster is the default of this process."""

    def __init__(self, target: Callable[[], Target]) -> None:
        self._make_target = target
        self._targets: list[Target] = []

    def __enter__(self) -> None:
        __tracebackhide__ = True
        target = self._make_target()
        _PROCESS.add(target)
        self._targets.append(target)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _PROCESS.remove(self._targets.pop())

    async def __aenter__(self) -> None:
        __tracebackhide__ = True
        self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


class _ProcessDefaults:
    """The defaults of this process: the targets of the blocks, and the values that apply after the last block."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._targets: list[Target] = []
        self._addresses: set[Address | None] = set()
        """The addresses of the clusters of all blocks since the first began."""
        self._environment: Mapping[str, str | None] = {}
        self._attributes: dict[tuple[int, str], tuple[Setting, Callable[[], Any]]] = {}
        """The attributes that were changed, with functions that return their values after the last block."""
        self._watcher = ImportWatcher(LIBRARIES, self._apply_to_import)
        self._refused = RefusedServers((), lambda _: False)

    def add(self, target: Target) -> None:
        with self._lock:
            if not self._targets:
                self._begin()
            self._targets.append(target)
            self._apply(target)

    def remove(self, target: Target) -> None:
        with self._lock:
            index = next(index for index, each in enumerate(self._targets) if each is target)
            del self._targets[index]
            if self._targets:
                self._apply(self._targets[-1])
            else:
                self._end()

    def _begin(self) -> None:
        servers = [*own_servers(os.environ, loaded_servers(sys.modules))]
        self._refused = RefusedServers(servers, lambda address: address in self._addresses)
        self._refused.install()
        sys.meta_path.insert(0, self._watcher)
        names = (*KUBECONFIG_VARIABLES, *IN_CLUSTER_VARIABLES)
        self._environment = {name: os.environ.get(name) for name in names}

    def _end(self) -> None:
        sys.meta_path.remove(self._watcher)
        self._refused.remove()
        for name, value in self._environment.items():
            _set_variable(name, value)
        for setting, former_value in self._attributes.values():
            setattr(setting.owner, setting.name, former_value())
        self._attributes.clear()
        self._addresses.clear()

    def _apply(self, target: Target) -> None:
        self._addresses.add(address_of(target.url))
        for name in KUBECONFIG_VARIABLES:
            _set_variable(name, str(target.kubeconfig))
        for name in IN_CLUSTER_VARIABLES:
            _set_variable(name, None)
        for module in [module for name in LIBRARIES if (module := sys.modules.get(name))]:
            self._apply_to(module, target)

    def _apply_to_import(self, module: ModuleType) -> None:
        with self._lock:
            if self._targets:
                self._apply_to(module, self._targets[-1], is_import=True)

    def _apply_to(self, module: ModuleType, target: Target, *, is_import: bool = False) -> None:
        for setting in settings_of(module, target):
            key = id(setting.owner), setting.name
            if key not in self._attributes:
                value = getattr(setting.owner, setting.name)
                read_again = setting.read_again if is_import else None
                self._attributes[key] = setting, read_again or partial(_same, value)
            setattr(setting.owner, setting.name, setting.value)


def _same(value: Any) -> Any:
    return value


def _set_variable(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


_PROCESS: Final = _ProcessDefaults()
