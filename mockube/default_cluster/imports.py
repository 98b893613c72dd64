"""A finder that calls a function after each import of certain modules."""

import sys
from collections.abc import Callable, Collection, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class ImportWatcher(MetaPathFinder):
    """Finds modules as the other finders do, and calls `imported` with each of the named ones after its code has run."""

    def __init__(self, names: Collection[str], imported: Callable[[ModuleType], None]) -> None:
        self._names = names
        self._imported = imported

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._names:
            return None
        for finder in [*sys.meta_path]:
            if finder is not self and (spec := finder.find_spec(fullname, path, target)) is not None:
                if spec.loader is not None:
                    spec.loader = _WatchedLoader(spec.loader, self._imported)
                return spec
        return None


class _WatchedLoader(Loader):
    def __init__(self, loader: Loader, imported: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._imported = imported

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._imported(module)
