"""Why a server cannot have some packs: one is invalid, or defines a kind that is defined already."""

from collections.abc import Collection, Iterable, Iterator

from mockube.apimachinery.groups import GroupResource
from mockube.component_base.packs import PackError

from .compiled_packs import webhooks_of
from .definitions import definition_trees
from .webhook import KindWebhook


def packs_problem(packs: Collection[str]) -> str:
    """Return why a server cannot have these packs; "" if it can."""
    try:
        return _conflict_of(packs) or _webhook_problem(packs)
    except PackError as error:
        return str(error)


def _conflict_of(packs: Iterable[str]) -> str:
    owners: dict[tuple[str, str], str] = {}
    for pack in packs:
        for group, name in _names_of_kinds(pack):
            owner = owners.get((group, name))
            if owner == pack:
                return f'pack "{pack}": two of its definitions define {name} of {group}'
            if owner is not None:
                return f'packs "{owner}" and "{pack}" both define {name} of {group}'
            owners[group, name] = pack
    return ""


def _names_of_kinds(pack: str) -> Iterator[tuple[str, str]]:
    """Yield the group of each kind of a pack with each of its names."""
    for tree in definition_trees(pack):
        group, names = tree["spec"]["group"], tree["spec"]["names"]
        for name in dict.fromkeys((names["plural"], names["kind"])):
            yield group, name


def _webhook_problem(packs: Iterable[str]) -> str:
    for pack in packs:
        specs = [tree["spec"] for tree in definition_trees(pack)]
        defined = {GroupResource(spec["group"], spec["names"]["plural"]) for spec in specs}
        for webhook in webhooks_of(pack):
            if isinstance(webhook, KindWebhook) and webhook.group_resource not in defined:
                return f'pack "{pack}": there is no {webhook.group_resource} for its webhook'
    return ""
