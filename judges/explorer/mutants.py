"""The mutations of our controllers, and how the code of one is patched in a process of its own."""

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct, convert

from tests.support.processes.process import ROOT

HERE = Path(__file__).parent


class Mutation(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line of a controller, and the line in its place."""

    file: str
    line: str
    replacement: str
    why: str
    """What the line prevents."""
    scenario: str
    equivalent: str = ""
    """Why nobody can see the difference."""


def read_mutations() -> Mapping[str, Mutation]:
    return {name: convert(tree, Mutation) for name, tree in _read("mutations.yaml").items()}


def read_scenarios() -> Mapping[str, Mapping[str, Any]]:
    return _read("scenarios.yaml")


def _read(name: str) -> Mapping[str, Any]:
    return yaml.safe_load((HERE / name).read_text())


def mutated_source(mutation: Mutation, source: str) -> str:
    """Return the source with the other line; raise ValueError unless the line exists once."""
    lines = source.splitlines()
    if lines.count(mutation.line) != 1:
        raise ValueError(f"{mutation.file} has {lines.count(mutation.line)} times: {mutation.line}")
    return "\n".join(mutation.replacement if line == mutation.line else line for line in lines) + "\n"


def install(mutation: Mutation) -> None:
    """Let the module of a mutation be imported with the other line. It must not have been imported before."""
    name = "mockube." + mutation.file.removesuffix(".py").replace("/", ".")
    if name in sys.modules:
        raise ValueError(f"{name} was imported already")
    source = mutated_source(mutation, (ROOT / mutation.file).read_text())
    sys.meta_path.insert(0, _MutatedModule(name, source))


class _MutatedModule(importlib.abc.MetaPathFinder, importlib.abc.InspectLoader):
    """Finds and loads one module, from a source in memory."""

    def __init__(self, name: str, source: str) -> None:
        self._name, self._source = name, source

    def find_spec(
        self, fullname: str, _path: Any, _target: Any = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(fullname, self) if fullname == self._name else None

    def get_source(self, _fullname: str) -> str:
        return self._source
