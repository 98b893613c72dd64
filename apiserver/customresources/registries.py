"""Built-in and custom kinds behind the same doors: the verbs ask for schemas, decoding and rules, and need not know which.

Custom objects are trees to upstream. Only their metadata is read into a struct; the rest is what their schema leaves
of it, in any order, with null and empty things as they were given.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from mockube.apimachinery import gotext
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.schema import document, faults
from mockube.apimachinery.schema.decode import Decoded, Decoder
from mockube.apimachinery.schema.model import Field, Schemas, Shape, Type
from mockube.apimachinery.schema.normal import Normaliser
from mockube.apimachinery.schema.scan import has_duplicates
from mockube.apimachinery.tree import Tree
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.customresources.custom import Custom
from mockube.apiserver.customresources.pruning import Prune
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import objectmeta
from mockube.apiserver.registry.backend import Rules

OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


class AllSchemas:
    """The `Schemas` of everything that is served."""

    def __init__(self, built_in: Schemas, catalog: Catalog) -> None:
        self._built_in = built_in
        self._catalog = catalog
        self.definition = built_in.definition

    def kind(self, api_version: str, kind: str) -> Type | None:
        custom = self._catalog.custom_kind(api_version, kind)
        return self._built_in.kind(api_version, kind) if custom is None else custom.type

    def kinds(self) -> Iterable[tuple[str, str]]:
        yield from self._built_in.kinds()
        yield from ((custom.row.api_version, custom.row.kind) for custom in self._catalog.customs)


@cache
def _normaliser(_: Schemas) -> Normaliser:
    """Of these types: one for all servers of a process, for what it compiles depends on nothing else."""
    return Normaliser()


class AllDecoder(Decoder):
    """Decodes objects of every kind."""

    def __init__(self, schemas: Schemas, catalog: Catalog) -> None:
        super().__init__(_normaliser(schemas))
        self._catalog = catalog
        metadata = Field(name="metadata", type=schemas.definition(OBJECT_META))
        self._head = Type(
            shape=Shape.STRUCT, name="custom", load=lambda: MappingProxyType({"metadata": metadata})
        )

    def decode(
        self, of: Type, tree: Any, *, text: bytes = b"", strict: bool = True, before: Any = None
    ) -> Decoded:
        custom = self._catalog.custom_definition(of.name)
        if custom is None:
            return super().decode(of, tree, text=text, strict=strict, before=before)
        return self._decode_custom(custom.prune, tree, text, strict=strict)

    def decode_applied(self, of: Type, tree: Any, *, strict: bool) -> Decoded:
        custom = self._catalog.custom_definition(of.name)
        if custom is None:
            return super().decode(of, tree, strict=strict)
        return self._decode_custom(custom.prune_applied, tree, b"", strict=strict)

    def _decode_custom(self, prune: Prune, tree: Any, text: bytes, *, strict: bool) -> Decoded:
        twice = (
            faults.find(faults.UNTYPED, document.parse(text)).strict
            if strict and text and has_duplicates(text, tree)
            else ()
        )
        head = super().decode(self._head, {"metadata": tree.get("metadata")}, strict=strict)
        unknown: list[str] = []
        kept = prune(tree, unknown)
        rest = {name: value for name, value in kept.items() if name not in _HEAD}
        complaints = [f"unknown field {gotext.quote(path)}" for path in sorted(unknown)]
        return Decoded(head.tree | rest, (*twice, *head.strict, *complaints) if strict else ())


_HEAD: Final = frozenset({"apiVersion", "kind", "metadata"})


class AllRules:
    """The `Rules` of every kind: those of custom ones stand in their schemas."""

    def __init__(self, built_in: Rules, catalog: Catalog) -> None:
        self._built_in = built_in
        self._catalog = catalog
        self.warn_create = built_in.warn_create
        self.warn_update = built_in.warn_update

    def default(self, api_version: str, kind: str, tree: Tree) -> None:
        custom = self._catalog.custom_kind(api_version, kind)
        if custom is None:
            self._built_in.default(api_version, kind, tree)
        else:
            custom.default(tree)

    def check_create(self, resource: Resource, tree: Tree) -> Sequence[FieldError]:
        custom = self._custom(resource)
        if custom is None:
            return self._built_in.check_create(resource, tree)
        found = objectmeta.check(tree, objectmeta.SUBDOMAIN, namespaced=resource.namespaced)
        return [*found, *custom.check(tree)]

    def check_update(
        self, resource: Resource, subresource: str, new: Tree, old: Tree
    ) -> Sequence[FieldError]:
        found = self._built_in.check_update(resource, subresource, new, old)
        custom = self._custom(resource)
        return found if custom is None else [*found, *custom.check(new, old)]

    def _custom(self, resource: Resource) -> Custom | None:
        return self._catalog.custom_kind(resource.api_version, resource.kind) if resource.custom else None
