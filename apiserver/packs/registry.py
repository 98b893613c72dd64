"""The kinds of packs, compiled from their definitions, and their admission webhooks, which run in this process."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Final, TypeAlias

import orjson

from mockube.apimachinery import errors
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.schema.decode import DecodeError
from mockube.apimachinery.schema.model import Schemas
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apimachinery.yaml_decode import load
from mockube.apiserver.admission.plugin import WRITE, Plugin
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.customresources.compile import compile_definition
from mockube.apiserver.customresources.custom_version import CustomVersion
from mockube.apiserver.customresources.registries import OBJECT_META
from mockube.apiserver.packs.definitions import definitions
from mockube.apiserver.packs.denial import denial_error
from mockube.apiserver.packs.kruise import clone_set, stateful_set, united_deployment
from mockube.apiserver.packs.kruise.launch_priority import LaunchPriority
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import AdmissionAttributes

# --- webhooks

SetDefaults: TypeAlias = Callable[[Registry, Tree, ReadOnlyTree | None], None]
"""Takes the new object, which it changes, and the old one. Raises DecodeError if a template cannot be read."""

Validate: TypeAlias = Callable[[Registry, ReadOnlyTree, ReadOnlyTree | None], Iterable[FieldError]]
"""Takes the new object and the old one. Raises DecodeError if a template cannot be read."""

BAD_REQUEST: Final = 400
UNPROCESSABLE: Final = 422


class Webhook(Plugin):
    operations = WRITE

    def __init__(self, custom: CustomVersion, *, set_defaults: SetDefaults, validate: Validate) -> None:
        self._custom = custom
        self._set_defaults = set_defaults
        self._validate = validate
        self._name = custom.row.singular_name
        self.targets = frozenset({(custom.row.group, custom.row.name, "")})

    async def mutate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        new_object = attributes.object
        assert new_object is not None
        if [*self._custom.check(new_object)]:
            return  # the validation by schema returns a better message
        custom_object: Tree = {"spec": {}} | orjson.loads(orjson.dumps(new_object))
        try:
            self._set_defaults(registry, custom_object, attributes.old)
        except DecodeError as error:
            raise denial_error(f"m{self._name}.kb.io", str(error), BAD_REQUEST) from error
        new_object["spec"] = custom_object["spec"]

    async def validate(self, registry: Registry, attributes: AdmissionAttributes) -> None:
        assert attributes.object is not None
        try:
            field_errors = [*self._validate(registry, attributes.object, attributes.old)]
        except DecodeError as error:
            raise denial_error(f"v{self._name}.kb.io", str(error), BAD_REQUEST) from error
        if field_errors:
            raise denial_error(f"v{self._name}.kb.io", errors.aggregate(field_errors), UNPROCESSABLE)


WEBHOOKS: Final[Mapping[str, Mapping[GroupResource, tuple[SetDefaults, Validate]]]] = {
    "kruise": {
        GroupResource("apps.kruise.io", "clonesets"): (clone_set.set_defaults, clone_set.validate),
        GroupResource("apps.kruise.io", "statefulsets"): (stateful_set.set_defaults, stateful_set.validate),
        GroupResource("apps.kruise.io", "uniteddeployments"): (
            united_deployment.set_defaults,
            united_deployment.validate,
        ),
    }
}

_POD_WEBHOOKS: Final[Mapping[str, Sequence[type[Plugin]]]] = {"kruise": (LaunchPriority,)}


def pack_webhooks(packs: Iterable[str], catalog: Catalog) -> Iterator[Plugin]:
    for pack in packs:
        yield from (webhook() for webhook in _POD_WEBHOOKS.get(pack, ()))
        for resource, (set_defaults, validate) in WEBHOOKS.get(pack, {}).items():
            row = catalog.stored_rows[resource]
            custom = catalog.custom_kinds.get((row.api_version, row.kind))
            assert custom is not None
            yield Webhook(custom, set_defaults=set_defaults, validate=validate)


# --- kinds


def pack_kinds(packs: Iterable[str], schemas: Schemas) -> Iterator[Sequence[CustomVersion]]:
    """Yield each resource of the packs in all its versions."""
    for pack in packs:
        yield from _compile(pack, schemas)


@cache
def definition_trees(pack: str) -> Sequence[Tree]:
    """Return the CustomResourceDefinitions of a pack, which a process reads once."""
    return [load(text).tree for text in definitions(pack)]


@cache
def _compile(pack: str, schemas: Schemas) -> Sequence[Sequence[CustomVersion]]:
    metadata = partial(schemas.definition, OBJECT_META)
    return [compile_definition(tree, metadata) for tree in definition_trees(pack)]
