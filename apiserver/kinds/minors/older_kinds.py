"""The kinds of an older minor release: those of the newest without later ones, and with versions that were removed."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery.schema import minors
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.kind import Group, Kind
from mockube.apiserver.kinds.minors.columns import older_printer
from mockube.apiserver.kinds.minors.fields import PODS, disabled_fields
from mockube.apiserver.kinds.minors.flowcontrol import V1BETA3
from mockube.apiserver.kinds.minors.rules import older_validation, older_warnings
from mockube.apiserver.kinds.networking import ip_address, service_cidr
from mockube.apiserver.kinds.registry import NEWEST, Kinds
from mockube.apiserver.kinds.strategy import DEFAULT, Strategy

BETAS: Final[Mapping[str, tuple[Kind, ...]]] = {"flowcontrol.apiserver.k8s.io": V1BETA3}
"""By group, the kinds of beta versions that older minors serve by default, and the newest does not."""
SERVICE_ADDRESSES: Final = (ip_address.KIND.resource, service_cidr.KIND.resource)
"""Resources in which the server stores the addresses of Services, whether they are served or not."""
_SINCE: Final = re.compile(r"deprecated in v(1\.\d+)\+")


@cache
def older_kinds(minor: str) -> Kinds:
    """Return the kinds that a server of an older minor release has by default."""
    groups = (_group(group, minor) for group in NEWEST.groups)
    hidden = (row for row in SERVICE_ADDRESSES if not _is_served(row, minor))
    return Kinds((group for group in groups if group.kinds), hidden, minor)


def _group(group: Group, minor: str) -> Group:
    kinds = [
        _kind(kind, minor)
        for kind in (*group.kinds, *BETAS.get(group.name, ()))
        if _is_served(kind.resource, minor)
    ]
    versions = dict.fromkeys((*group.versions, *(kind.resource.version for kind in kinds)))
    served_versions = {kind.resource.version for kind in kinds}
    return Group(
        name=group.name,
        versions=tuple(version for version in versions if version in served_versions),
        kinds=tuple(kinds),
        defaults=group.defaults,
    )


def _is_served(row: Resource, minor: str, subresource: str = "") -> bool:
    changes = minors.changes(minor, "resources")
    key = f"{row.api_version} {row.name}{subresource and f'/{subresource}'}"
    # The table has the served resources that the newest does not have.
    return changes.get(key, True if key in _NEWEST else None) is not None


_NEWEST: Final = frozenset(
    name
    for kind in NEWEST.all
    for row in [kind.resource]
    for name in (
        f"{row.api_version} {row.name}",
        *(f"{row.api_version} {row.name}/{subresource.name}" for subresource in row.subresources),
    )
)


def _kind(kind: Kind, minor: str) -> Kind:
    row = kind.resource
    resource = replace(
        row,
        subresources=tuple(
            subresource for subresource in row.subresources if _is_served(row, minor, subresource.name)
        ),
        deprecated=_deprecation(row.deprecated, minor),
    )
    return replace(
        kind,
        resource=resource,
        strategy=_strategy(kind, minor),
        validation=older_validation(kind, minor),
        warnings=older_warnings(kind, minor),
        printer=older_printer(kind, minor),
    )


def _deprecation(text: str, minor: str) -> str:
    since = _SINCE.search(text)
    return "" if since and minors.is_before(minor, since[1]) else text


def _strategy(kind: Kind, minor: str) -> Strategy | None:
    row = kind.resource
    if row.storage_version not in (None, row.group_version):
        return None  # the strategy of the stored version applies
    own = kind.strategy or DEFAULT
    disabled = disabled_fields(row.group_resource, own.disabled, minor)
    if row.group_resource == PODS and minors.is_before(minor, "1.33"):
        return replace(own, disabled=disabled, generation=(), first_generation=0)
    return kind.strategy if disabled is own.disabled else replace(own, disabled=disabled)
