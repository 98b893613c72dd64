"""The kinds of packs, compiled from their definitions, and their admission plugins."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial

from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.schema.model import Schemas
from mockube.apimachinery.tree import Tree
from mockube.apiserver.admission.plugin import Plugin
from mockube.apiserver.customresources.catalog import Catalog
from mockube.apiserver.customresources.compile import compile_definition
from mockube.apiserver.customresources.custom_version import CustomVersion
from mockube.apiserver.customresources.registries import OBJECT_META
from mockube.component_base.packs import PackError, load_pack, parts_of

from .definitions import definition_trees
from .webhook import KindWebhook, KindWebhookPlugin


@cache
def webhooks_of(pack: str) -> Sequence[KindWebhook | Plugin]:
    webhooks = parts_of(pack, "webhooks", load_pack(pack).webhooks)
    return [_checked(pack, webhook) for webhook in webhooks]


def _checked(pack: str, webhook: object) -> KindWebhook | Plugin:
    if isinstance(webhook, KindWebhook | Plugin):
        return webhook
    raise PackError(f'pack "{pack}": {webhook!r} of its webhooks is neither a KindWebhook nor a Plugin')


def pack_plugins(packs: Iterable[str], catalog: Catalog) -> Iterator[Plugin]:
    """Yield the admission plugins of packs: their own, and those that call the webhooks of their kinds."""
    for pack in packs:
        for webhook in webhooks_of(pack):
            if isinstance(webhook, Plugin):
                yield webhook
            else:
                yield KindWebhookPlugin(catalog, catalog.stored_rows[webhook.group_resource], webhook)


def pack_conversions(packs: Iterable[str]) -> Mapping[GroupResource, Callable[[Tree, str], Tree]]:
    """Return the functions that convert objects of the packs to an apiVersion."""
    return {
        webhook.group_resource: webhook.convert
        for pack in packs
        for webhook in webhooks_of(pack)
        if isinstance(webhook, KindWebhook) and webhook.convert is not None
    }


def pack_kinds(packs: Iterable[str], schemas: Schemas) -> Iterator[Sequence[CustomVersion]]:
    """Yield each resource of the packs in all its versions."""
    for pack in packs:
        yield from _compile(pack, schemas)


@cache
def _compile(pack: str, schemas: Schemas) -> Sequence[Sequence[CustomVersion]]:
    metadata = partial(schemas.definition, OBJECT_META)
    return [compile_definition(tree, metadata) for tree in definition_trees(pack)]
