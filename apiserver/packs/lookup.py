"""The webhooks of each pack."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from apimachinery.groups import GroupResource
from apiserver.crd.catalog import Catalog
from apiserver.packs.kruise import clonesets, statefulsets, uniteddeployments
from apiserver.packs.webhook import Check, Fill, Webhook

_KRUISE: Final = "apps.kruise.io"

WEBHOOKS: Final[Mapping[str, Mapping[GroupResource, tuple[Fill, Check]]]] = {
    "kruise": {
        GroupResource(_KRUISE, "clonesets"): (clonesets.fill, clonesets.check),
        GroupResource(_KRUISE, "statefulsets"): (statefulsets.fill, statefulsets.check),
        GroupResource(_KRUISE, "uniteddeployments"): (uniteddeployments.fill, uniteddeployments.check),
    }
}


def webhooks(packs: Iterable[str], catalog: Catalog) -> Iterator[Webhook]:
    for pack in packs:
        for resource, (fill, check) in WEBHOOKS[pack].items():
            row = catalog.stored_rows[resource]
            custom = catalog.custom_kind(row.api_version, row.kind)
            assert custom is not None
            yield Webhook(custom, fill=fill, check=check)
