"""The kinds of packs, compiled from their definitions, and their admission webhooks, which run in this process."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Final

import orjson
from msgspec import Struct

from mockube.apimachinery import errors
from mockube.apimachinery.errors import ErrorType, FieldError
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.schema.model import Schemas
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apimachinery.yaml_decode import load
from mockube.apiserver.admission.plugin import WRITE, Plugin
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.customresources.compile import compile_definition
from mockube.apiserver.customresources.custom_version import CustomVersion
from mockube.apiserver.customresources.registries import OBJECT_META
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.packs.definitions import definitions
from mockube.apiserver.packs.denial import denial_error
from mockube.apiserver.packs.kruise import alpha, beta, clone_set, go_form, stateful_set, united_deployment
from mockube.apiserver.packs.kruise.go_form import with_go_values
from mockube.apiserver.packs.kruise.launch_priority import LaunchPriority
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes
from mockube.apiserver.schema.decode import DecodeError

# --- webhooks


class PackKindRules(Struct, frozen=True, kw_only=True):
    """What the webhooks of a kind do with an object and the old one, both of one version."""

    decode: Callable[[Registry, ReadOnlyTree], Tree]
    """Returns the object as the webhook encodes it. Raises DecodeError if it cannot be read."""
    set_defaults: Callable[[Tree, ReadOnlyTree | None], None]
    """Changes a decoded object."""
    validate: Callable[[Registry, ReadOnlyTree, ReadOnlyTree | None], Iterable[FieldError]]


BAD_REQUEST: Final = 400
UNPROCESSABLE: Final = 422


def _is_decodable(error: FieldError) -> bool:
    """Return whether an object with an error of its schema can be decoded: no field has another type."""
    is_of_scale = error.field.startswith(".spec.")
    return is_of_scale or error.type in (ErrorType.REQUIRED, ErrorType.NOT_SUPPORTED)


class Webhook(Plugin):
    operations = WRITE

    def __init__(self, catalog: Catalog, row: Resource, rules: PackKindRules) -> None:
        self._catalog = catalog
        self._rules = rules
        self._name = row.singular_name
        self.targets = frozenset({(row.group, row.name, "")})

    async def mutate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        new_object = attributes.object
        assert new_object is not None
        custom = self._catalog.custom_kinds.get((new_object["apiVersion"], new_object["kind"]))
        if custom is None or not all(map(_is_decodable, custom.check(new_object))):
            return  # the validation by schema returns a better message
        decoded, old = self._decode("m", registry, new_object, attributes.old)
        encoded = orjson.dumps(decoded)
        self._rules.set_defaults(decoded, old)
        if orjson.dumps(decoded) != encoded:
            # A version may not have all fields that get defaults.
            new_object["spec"] = custom.prune({**new_object, "spec": decoded["spec"]}, [])["spec"]
            custom.default(new_object)

    async def validate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        assert attributes.object is not None
        new, old = self._decode("v", registry, attributes.object, attributes.old)
        field_errors = [*with_go_values(self._rules.validate(registry, new, old))]
        if field_errors:
            raise denial_error(f"v{self._name}.kb.io", errors.aggregate(field_errors), UNPROCESSABLE)

    def _decode(
        self, prefix: str, registry: Registry, new: Tree, old: ReadOnlyTree | None
    ) -> tuple[Tree, Tree | None]:
        try:
            decoded = self._rules.decode(registry, {"spec": {}, **orjson.loads(orjson.dumps(new))})
            return decoded, None if old is None else self._rules.decode(registry, {"spec": {}, **old})
        except DecodeError as error:
            raise denial_error(f"{prefix}{self._name}.kb.io", str(error), BAD_REQUEST) from error


WEBHOOKS: Final[Mapping[str, Mapping[GroupResource, PackKindRules]]] = {
    "kruise": {
        GroupResource("apps.kruise.io", "clonesets"): PackKindRules(
            decode=go_form.decode_clone_set,
            set_defaults=clone_set.set_defaults,
            validate=clone_set.validate,
        ),
        GroupResource("apps.kruise.io", "statefulsets"): PackKindRules(
            decode=go_form.decode_stateful_set,
            set_defaults=stateful_set.set_defaults,
            validate=stateful_set.validate,
        ),
        GroupResource("apps.kruise.io", "uniteddeployments"): PackKindRules(
            decode=go_form.decode_united_deployment,
            set_defaults=united_deployment.set_defaults,
            validate=united_deployment.validate,
        ),
    }
}

_POD_WEBHOOKS: Final[Mapping[str, Sequence[type[Plugin]]]] = {"kruise": (LaunchPriority,)}


def pack_webhooks(packs: Iterable[str], catalog: Catalog) -> Iterator[Plugin]:
    for pack in packs:
        yield from (webhook() for webhook in _POD_WEBHOOKS.get(pack, ()))
        for resource, rules in WEBHOOKS.get(pack, {}).items():
            yield Webhook(catalog, catalog.stored_rows[resource], rules)


# --- kinds

_CONVERSIONS: Final[Mapping[str, Mapping[GroupResource, Callable[[Tree, str], Tree]]]] = {
    "kruise": {**alpha.CONVERSIONS, **beta.CONVERSIONS}
}


def pack_conversions(packs: Iterable[str]) -> Mapping[GroupResource, Callable[[Tree, str], Tree]]:
    """Return the functions that convert objects of the packs to an apiVersion."""
    return {resource: convert for pack in packs for resource, convert in _CONVERSIONS.get(pack, {}).items()}


def pack_kinds(packs: Iterable[str], schemas: Schemas) -> Iterator[Sequence[CustomVersion]]:
    """Yield each resource of the packs in all its versions."""
    for pack in packs:
        yield from _compile(pack, schemas)


@cache
def definition_trees(pack: str) -> Sequence[Tree]:
    """Return the CustomResourceDefinitions of a pack with all versions; a process reads them once."""
    return [alpha.with_alpha(beta.with_beta(load(text).tree)) for text in definitions(pack)]


@cache
def _compile(pack: str, schemas: Schemas) -> Sequence[Sequence[CustomVersion]]:
    metadata = partial(schemas.definition, OBJECT_META)
    return [compile_definition(tree, metadata) for tree in definition_trees(pack)]
