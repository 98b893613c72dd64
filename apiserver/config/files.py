"""Reads the YAML or JSON files that flags name, and checks their fields."""

from argparse import ArgumentTypeError
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from mockube.apimachinery.gotext import quote
from mockube.apimachinery.yaml_decode import load
from mockube.apimachinery.yaml_scalars import YamlError
from mockube.component_base.operating_system import os_problem

Tree: TypeAlias = Mapping[str, Any]
T = TypeVar("T")


class FileProblem(ValueError):
    """The content of a file is invalid."""


def from_flag(read: Callable[[Path], T], text: str) -> T:
    """Read the file that a flag names, or raise what the flag's parser reports."""
    try:
        return read(Path(text))
    except OSError as error:
        raise ArgumentTypeError(os_problem(error)) from error
    except (YamlError, FileProblem) as error:
        raise ArgumentTypeError(f"{text}: {error}") from error


def read_tree(path: Path) -> dict[str, Any]:
    loaded = load(path.read_bytes()).tree
    if not isinstance(loaded, dict):
        raise FileProblem(f"{path} does not contain an object")
    return loaded


def check_fields(tree: Tree, field_names: Collection[str], location: str) -> None:
    unknown = sorted(tree.keys() - set(field_names))
    if unknown:
        raise FileProblem(f"unknown field {quote(unknown[0])} in {location}")


def list_of(tree: Tree, name: str) -> list[dict[str, Any]]:
    items = tree.get(name) or []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise FileProblem(f"{name} is not a list of objects")
    return items
