"""The kinds of an older minor release: those of the newest without kinds added later, and with removed versions."""

import re
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from mockube.apimachinery.groups import PODS, GroupKind, GroupResource
from mockube.apimachinery.schema import minors
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.built_in_kinds import NEWEST, Kinds
from mockube.apiserver.kinds.kind import Group, Kind
from mockube.apiserver.kinds.networking import ip_address, service_cidr
from mockube.apiserver.kinds.strategy import DEFAULT, Strategy
from mockube.apiserver.wire.table import Column, Printer

from .fields import disabled_fields
from .flowcontrol import V1BETA3
from .older_parts import with_older_parts
from .rules import older_validation, older_warnings

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
    subresources = tuple(
        subresource for subresource in row.subresources if _is_served(row, minor, subresource.name)
    )
    return older_kind(replace(kind, resource=replace(row, subresources=subresources)), minor)


def older_kind(kind: Kind, minor: str) -> Kind:
    """Return a kind with the rules, columns and warnings of an older minor release."""
    kind = with_older_parts(kind, minor)
    return replace(
        kind,
        resource=replace(
            kind.resource,
            deprecated=_deprecation(kind.resource.deprecated, minor),
            hashed_version=_hashed_version(kind.resource, minor),
        ),
        strategy=_strategy(kind, minor),
        validation=older_validation(kind, minor),
        warnings=older_warnings(kind, minor),
        printer=_printer(kind, minor),
    )


def _deprecation(text: str, minor: str) -> str:
    since = _SINCE.search(text)
    return "" if since and minors.is_before(minor, since[1]) else text


_STORED_AS: Final[Mapping[GroupResource, tuple[str, str]]] = {
    GroupResource("admissionregistration.k8s.io", "mutatingadmissionpolicies"): ("1.36", "v1beta1"),
    GroupResource("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"): ("1.36", "v1beta1"),
}
"""The last minor in which upstream stores another version than this server, and that version."""


def _hashed_version(row: Resource, minor: str) -> str:
    until, version = _STORED_AS.get(row.group_resource, ("", ""))
    return version if until and not minors.is_before(until, minor) else row.hashed_version


_GENERATION_SINCE: Final = {PODS: "1.33", GroupResource("autoscaling", "horizontalpodautoscalers"): "1.37"}
"""The first minor in which objects of some resources have a generation."""


def _strategy(kind: Kind, minor: str) -> Strategy | None:
    row = kind.resource
    if row.storage_version not in (None, row.group_version):
        return None  # the strategy of the stored version applies
    own = kind.strategy or DEFAULT
    disabled = disabled_fields(row.group_resource, own.disabled, minor)
    older = replace(own, disabled=disabled)
    if minors.is_before(minor, _GENERATION_SINCE.get(row.group_resource, minor)):
        older = replace(older, generation=(), first_generation=0)
    return kind.strategy if older == own else older


# --- columns

_SECRETS: Final = "Secrets"


class _Order(NamedTuple):
    until: str
    columns: tuple[str, ...] = ()
    """The names of all columns; empty if the order is unchanged."""
    left_out: tuple[str, ...] = ()


_ORDERS: Final[Mapping[GroupKind, _Order]] = {
    GroupKind("", "ResourceQuota"): _Order("1.32", columns=("Name", "Age", "Request", "Limit")),
    GroupKind("", "ServiceAccount"): _Order("1.34", columns=("Name", _SECRETS, "Age")),
    GroupKind("batch", "CronJob"): _Order("1.29", left_out=("Timezone",)),
    GroupKind("batch", "Job"): _Order("1.29", left_out=("Status",)),
    GroupKind("scheduling.k8s.io", "PriorityClass"): _Order("1.31", left_out=("PreemptionPolicy",)),
}


def _printer(kind: Kind, minor: str) -> Printer | None:
    own, order = kind.printer, _ORDERS.get(kind.resource.group_kind)
    if own is None or order is None or minors.is_before(order.until, minor):
        return own
    columns = {column.name: column for column in own.columns} | {_SECRETS: Column(name=_SECRETS)}
    names = order.columns or tuple(column.name for column in own.columns if column.name not in order.left_out)
    own_names = [column.name for column in own.columns]

    def cells(tree: Tree, now: datetime) -> list[Any]:
        cells_by_name = dict(zip(own_names, own.cells(tree, now), strict=True))
        cells_by_name[_SECRETS] = len(tree.get("secrets") or ())
        return [cells_by_name[name] for name in names]

    return replace(own, columns=[columns[name] for name in names], cells=cells)
