"""The kinds of packs, compiled from their definitions, and their webhooks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Final

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.packs.definitions import definitions
from mockube.apimachinery.schema.model import Schemas
from mockube.apimachinery.tree import Tree
from mockube.apimachinery.yaml_decode import load
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.customresources.compile import compile_definition
from mockube.apiserver.customresources.custom import Custom
from mockube.apiserver.customresources.registries import OBJECT_META
from mockube.apiserver.packs.kruise import clone_set, stateful_set, united_deployment
from mockube.apiserver.packs.webhook import SetDefaults, Validate, Webhook

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


def pack_webhooks(packs: Iterable[str], catalog: Catalog) -> Iterator[Webhook]:
    for pack in packs:
        for resource, (set_defaults, validate) in WEBHOOKS[pack].items():
            row = catalog.stored_rows[resource]
            custom = catalog.custom_kind(row.api_version, row.kind)
            assert custom is not None
            yield Webhook(custom, set_defaults=set_defaults, validate=validate)


def pack_kinds(packs: Iterable[str], schemas: Schemas) -> Iterator[Sequence[Custom]]:
    """Yield each resource of the packs in all its versions."""
    for pack in packs:
        yield from _compile(pack, schemas)


@cache
def definition_trees(pack: str) -> Sequence[Tree]:
    """Return the CustomResourceDefinitions of a pack, which a process reads once."""
    return [load(text).tree for text in definitions(pack)]


@cache
def _compile(pack: str, schemas: Schemas) -> Sequence[Sequence[Custom]]:
    metadata = partial(schemas.definition, OBJECT_META)
    return [compile_definition(tree, metadata) for tree in definition_trees(pack)]
