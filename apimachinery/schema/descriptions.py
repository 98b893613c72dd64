"""Upstream's descriptions of types and fields, loaded on first use from `kubernetes-validate`'s OpenAPI definitions."""

from collections.abc import Mapping
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path

from msgspec import Raw, Struct
from msgspec.json import decode


class _Property(Struct, frozen=True):
    description: str = ""


class _Definition(Struct, frozen=True):
    description: str = ""
    properties: Mapping[str, _Property] = {}


class _Document(Struct, frozen=True, rename={"definitions": "$defs"}):
    definitions: Mapping[str, Raw]


class Descriptions:
    """The descriptions of one minor release, such as "1.36". A missing description is an empty text."""

    def __init__(self, release: str) -> None:
        self._release = release
        self._definition = cache(self._find)

    def of_type(self, definition: str) -> str:
        return self._definition(definition).description

    def of_field(self, definition: str, field: str) -> str:
        schema = self._definition(definition).properties.get(field)
        return schema.description if schema else ""

    def _find(self, definition: str) -> _Definition:
        text = self._definitions.get(definition)
        return decode(text, type=_Definition) if text else _Definition()

    @cached_property
    def _definitions(self) -> Mapping[str, Raw]:
        return openapi_definitions(self._release)


def openapi_definitions(release: str) -> Mapping[str, Raw]:
    """Return the definitions of a minor release by name, each as undecoded JSON."""
    # Finding the package is a hundred times faster than importing it, and only its files are used.
    package = find_spec("kubernetes_validate")
    origin = package and package.origin
    assert origin, "kubernetes-validate is a dependency"
    folder = Path(origin).parent / "kubernetes-json-schema" / f"v{release}.0-local"
    return decode((folder / "_definitions.json").read_bytes(), type=_Document).definitions
