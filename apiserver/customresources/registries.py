"""Registries of built-in and custom kinds together, from which the verbs get schemas, decoders and rules.

Upstream decodes custom objects to trees. Only their metadata is decoded into a struct; other fields are pruned by the
schema, and keep their order and their null and empty values.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Any, Final

import orjson

from mockube.apimachinery import gotext, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.schema.model import Schemas, SchemaType
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import objectmeta
from mockube.apiserver.kinds.jsonschema.pruning import Prune
from mockube.apiserver.registry.registry import Rules
from mockube.apiserver.schema import decoder_errors, document
from mockube.apiserver.schema.decode import DecodedObject, DecodeError, Decoder, has_duplicates
from mockube.apiserver.schema.normal import Normaliser

from .catalog import Catalog
from .custom_version import CustomVersion

OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"


class AllSchemas:
    """The `Schemas` of everything that is served."""

    def __init__(self, built_in: Schemas, catalog: Catalog) -> None:
        self._built_in = built_in
        self._catalog = catalog
        self.definition = built_in.definition

    def kind(self, api_version: str, kind: str) -> SchemaType | None:
        custom = self._catalog.custom_kinds.get((api_version, kind))
        return self._built_in.kind(api_version, kind) if custom is None else custom.type

    def kinds(self) -> Iterable[tuple[str, str]]:
        yield from self._built_in.kinds()
        yield from ((custom.row.api_version, custom.row.kind) for custom in self._catalog.served_versions)


@cache
def _normaliser(_: Schemas) -> Normaliser:
    """Return the normaliser of these types, which all servers of a process share."""
    return Normaliser()


class AllDecoder(Decoder):
    """Decodes objects of every kind."""

    def __init__(self, schemas: Schemas, catalog: Catalog) -> None:
        super().__init__(_normaliser(schemas))
        self._catalog = catalog
        self._metadata = schemas.definition(OBJECT_META)

    def decode(
        self, of: SchemaType, tree: Any, *, text: bytes = b"", strict: bool = True, before: Any = None
    ) -> DecodedObject:
        custom = self._catalog.custom_definitions.get(of.name)
        if custom is None:
            return super().decode(of, tree, text=text, strict=strict, before=before)
        return self._decode_custom(custom, custom.prune, tree, text, strict=strict)

    def decode_applied(self, of: SchemaType, tree: Any, *, strict: bool, before: Any = None) -> DecodedObject:
        custom = self._catalog.custom_definitions.get(of.name)
        if custom is None:
            return super().decode(of, tree, strict=strict, before=before)
        return self._decode_custom(custom, custom.prune_applied, tree, b"", strict=strict)

    def _decode_custom(
        self, custom: CustomVersion, prune: Prune, tree: Any, text: bytes, *, strict: bool
    ) -> DecodedObject:
        duplicates = (
            decoder_errors.find(decoder_errors.UNTYPED, document.parse(text)).strict
            if strict and text and has_duplicates(text, tree)
            else ()
        )
        of_metadata: list[str] = []
        of_embedded: list[str] = []
        unknown: list[str] = []
        head = self._decode_metadata(of_metadata, tree.get("metadata"), _METADATA, strict=strict)
        pruned = prune(tree, unknown)
        if custom.coerce is not None:
            pruned = custom.coerce(pruned, ROOT, partial(self._decode_metadata, of_embedded, strict=strict))
        decoded_tree = {"metadata": head} | {
            name: value for name, value in pruned.items() if name not in _HEAD
        }
        if not strict:
            return DecodedObject(decoded_tree)
        of_fields = (f"unknown field {gotext.quote(path)}" for path in sorted(unknown))
        return DecodedObject(decoded_tree, (*duplicates, *of_metadata, *of_fields, *sorted(of_embedded)))

    def _decode_metadata(self, complaints: list[str], value: Any, path: Path, *, strict: bool) -> Any:
        metadata = {} if value is None else value
        try:
            decoded = super().decode(self._metadata, metadata, strict=strict)
        except DecodeError:
            # Upstream encodes the metadata with sorted keys before it decodes it, and reports the first error.
            text = orjson.dumps(metadata, option=orjson.OPT_SORT_KEYS)
            decoded = super().decode(self._metadata, orjson.loads(text), strict=strict)
        quoted = f'unknown field "{path}.'
        complaints += (complaint.replace(_UNKNOWN, quoted, 1) for complaint in decoded.strict)
        return decoded.tree


_UNKNOWN: Final = 'unknown field "'
_METADATA: Final = ROOT.child("metadata")
_HEAD: Final = frozenset({"apiVersion", "kind", "metadata"})


class AllRules:
    """The `Rules` of every kind: those of custom kinds are in their schemas."""

    def __init__(self, built_in: Rules, catalog: Catalog) -> None:
        self._built_in = built_in
        self._catalog = catalog
        self.no_version = built_in.no_version

    def default(self, api_version: str, kind: str, tree: Tree) -> None:
        custom = self._catalog.custom_kinds.get((api_version, kind))
        if custom is None:
            self._built_in.default(api_version, kind, tree)
        else:
            custom.default(tree)

    def check_create(self, resource: Resource, tree: Tree) -> Sequence[FieldError]:
        custom = self._custom(resource)
        if custom is None:
            return self._built_in.check_create(resource, tree)
        field_errors = objectmeta.check(tree, _NAMES, namespaced=resource.namespaced)
        return custom.check(tree, of_metadata=field_errors)

    def check_update(
        self, resource: Resource, subresource: str, new: Tree, old: Tree
    ) -> Sequence[FieldError]:
        field_errors = self._built_in.check_update(resource, subresource, new, old)
        custom = self._custom(resource)
        if custom is None:
            return field_errors
        of_metadata = objectmeta.check_update(new, old) if field_errors else ()
        check = custom.check_status if subresource == "status" else custom.check
        return check(new, old, of_metadata=[*field_errors, *of_metadata])

    def warn_create(self, resource: Resource, tree: Tree) -> Iterable[str]:
        """Return the warnings about a new object. For finalizers of custom objects, qualified names are only suggested."""
        if not resource.custom:
            return self._built_in.warn_create(resource, tree)
        return _finalizer_warnings(meta.metadata(tree).get("finalizers") or ())

    def warn_update(self, resource: Resource, subresource: str, new: Tree, old: Tree) -> Iterable[str]:
        if not resource.custom:
            return self._built_in.warn_update(resource, subresource, new, old)
        custom = self._custom(resource)
        of_rules = custom.rule_warnings(new, old) if custom is not None else ()
        finalizers = meta.metadata(new).get("finalizers")
        if not finalizers:
            return of_rules
        added = {*finalizers} - {*(meta.metadata(old).get("finalizers") or ())}
        return [*of_rules, *_finalizer_warnings(added)]

    def warn_refused(self, resource: Resource, new: Tree, old: Tree) -> Iterable[str]:
        custom = self._custom(resource)
        return custom.last_rule_warnings(new, old) if custom is not None else ()

    def _custom(self, resource: Resource) -> CustomVersion | None:
        return (
            self._catalog.custom_kinds.get((resource.api_version, resource.kind)) if resource.custom else None
        )


_NAMES: Final = objectmeta.with_any_finalizers(objectmeta.SUBDOMAIN)


def _finalizer_warnings(finalizers: Iterable[str]) -> Iterator[str]:
    for finalizer in sorted({*finalizers}):
        path = f"metadata.finalizers: {gotext.quote(finalizer)}"
        yield from (f"{path}: {problem}" for problem in names.check_label_key(finalizer))
        if "/" not in finalizer and finalizer not in objectmeta.STANDARD_FINALIZERS:
            including = " including a path (/)" if "." in finalizer else ""
            yield (
                f"{path}: prefer a domain-qualified finalizer name{including} "
                "to avoid accidental conflicts with other finalizer writers"
            )
