"""The built-in types of Kubernetes, from the files in `data/`.

Loading must not delay the start of a server: only an index is decoded, and the fields of a struct are created on first
use. `data/README.md` describes the source of the data.
"""

import gzip
from collections.abc import Iterable, Mapping
from functools import cache, partial
from pkgutil import get_data
from types import MappingProxyType
from typing import Any, Final

from msgspec import Raw, Struct
from msgspec.json import Decoder, decode

from . import minors
from .descriptions import Descriptions
from .model import Field, SchemaType, Shape

_ZEROS: Final = {Shape.STRING: "", Shape.INTEGER: 0, Shape.BOOLEAN: False}


class _TypeUse(Struct, frozen=True):
    """A type as one field or element uses it, in the stored form."""

    go: str
    shape: Shape
    name: str = ""
    element: "_TypeUse | None" = None
    list_type: str = "atomic"
    map_keys: tuple[str, ...] = ()
    map_type: str = "granular"
    merge_key: str = ""
    patch_strategy: frozenset[str] = frozenset()


class _Field(Struct, frozen=True):
    name: str
    type: _TypeUse
    required: bool = False
    pointer: bool = False
    omit_empty: bool = False
    omit_zero: bool = False
    embedded: tuple[str, ...] = ()
    default: Any = None


class _Index(Struct, frozen=True):
    kinds: Mapping[str, Mapping[str, str]]
    """The name of each kind's struct, by apiVersion and kind."""
    structs: Mapping[str, Raw]
    """The encoded fields of each struct, by its name."""


_FIELDS = Decoder(list[_Field])


_VALIDATED_IF_EMPTY = frozenset(
    {("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps", "dependencies")}
)
"""The fields that validation rejects even if they are empty, and that decoding therefore must not leave out."""


class BuiltinSchemas:
    """The built-in `Schemas` of one minor release. Each struct is created once, on first use."""

    def __init__(self, index: _Index, descriptions: Descriptions) -> None:
        self._index = index
        self._of_type, self._of_field = descriptions.of_type, descriptions.of_field
        self._struct = cache(self._make_struct)
        self._fields = cache(self._make_fields)

    def kind(self, api_version: str, kind: str) -> SchemaType | None:
        name = self._index.kinds.get(api_version, {}).get(kind)
        return self._struct(name) if name else None

    def definition(self, name: str) -> SchemaType:
        return self._struct(name)

    def has_definition(self, name: str) -> bool:
        return name in self._index.structs

    def kinds(self) -> Iterable[tuple[str, str]]:
        return ((version, kind) for version, kinds in self._index.kinds.items() for kind in kinds)

    def _make_struct(self, name: str) -> SchemaType:
        if name not in self._index.structs:
            raise KeyError(name)
        version, struct = name.rsplit(".", 2)[-2:]
        return self._make_type(_TypeUse(go=f"{version}.{struct}", shape=Shape.STRUCT, name=name))

    def _make_type(self, use: _TypeUse) -> SchemaType:
        # The garbage collector visits each part of each type, and there are many types: scalars have few parts.
        struct_callables: dict[str, Any] = {
            "load": partial(self._fields, use.name),
            "describe": partial(self._of_type, use.name),
        }
        return SchemaType(
            shape=use.shape,
            name=use.name,
            go=use.go,
            **(struct_callables if use.name else {}),
            element=self._make_type(use.element) if use.element else None,
            list_type=use.list_type,
            map_keys=use.map_keys,
            map_type=use.map_type,
            merge_key=use.merge_key,
            patch_strategy=use.patch_strategy,
        )

    def _make_fields(self, struct: str) -> Mapping[str, Field]:
        stored = _FIELDS.decode(self._index.structs[struct])
        return MappingProxyType({field.name: self._make_field(struct, field) for field in stored})

    def _make_field(self, struct: str, field: _Field) -> Field:
        # Upstream's definitions declare the zero value of a field that Go always writes as its default.
        is_always_written = not field.omit_empty and not field.pointer
        return Field(
            name=field.name,
            type=self._make_type(field.type),
            required=field.required,
            pointer=field.pointer or (struct, field.name) in _VALIDATED_IF_EMPTY,
            omit_empty=field.omit_empty,
            omit_zero=field.omit_zero,
            embedded=field.embedded,
            default=_ZEROS.get(field.type.shape)
            if is_always_written and field.default is None
            else field.default,
            describe=partial(self._of_field, struct, field.name),
        )


@cache
def load(release: str = minors.NEWEST) -> BuiltinSchemas:
    """Return the built-in types of a minor release, one of `minors.MINORS`.

    They are loaded once per process. They do not change, so all servers and threads of the process can share them.
    """
    packed = get_data("mockube.apimachinery.schema", "data/newest.json.gz")
    assert packed is not None, "the package is installed where its files can be read"
    index = decode(gzip.decompress(packed), type=_Index)
    return BuiltinSchemas(
        index if release == minors.NEWEST else _index_of_release(index, release), Descriptions(release)
    )


def _index_of_release(index: _Index, release: str) -> _Index:
    kinds = dict(index.kinds)
    for api_version, changed in minors.changes(release, "kinds").items():
        kinds[api_version] = {} if changed is None else decode(changed, type=dict[str, str])
    return _Index(kinds=kinds, structs=minors.table_of_minor(index.structs, release, "structs"))
