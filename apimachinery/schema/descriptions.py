"""Upstream's descriptions of types and fields, from its OpenAPI definitions, which are loaded on first use."""

from collections.abc import Mapping
from functools import cache, cached_property

from msgspec import Raw, Struct
from msgspec.json import decode

from . import minors


class _Property(Struct, frozen=True):
    description: str = ""


class _Definition(Struct, frozen=True):
    description: str = ""
    properties: Mapping[str, _Property] = {}


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
        return minors.openapi_definitions(self._release)
