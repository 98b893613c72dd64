"""The columns of kinds that differ in older minors."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.schema import minors
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.wire.table import Column, Printer

SECRETS: Final = "Secrets"


class _Order(NamedTuple):
    until: str
    columns: tuple[str, ...] = ()
    """The names of all columns; empty if the order is unchanged."""
    left_out: tuple[str, ...] = ()


_ORDERS: Final[Mapping[GroupKind, _Order]] = {
    GroupKind("", "ResourceQuota"): _Order("1.32", columns=("Name", "Age", "Request", "Limit")),
    GroupKind("", "ServiceAccount"): _Order("1.34", columns=("Name", SECRETS, "Age")),
    GroupKind("batch", "CronJob"): _Order("1.29", left_out=("Timezone",)),
    GroupKind("batch", "Job"): _Order("1.29", left_out=("Status",)),
    GroupKind("scheduling.k8s.io", "PriorityClass"): _Order("1.31", left_out=("PreemptionPolicy",)),
}


def older_printer(kind: Kind, minor: str) -> Printer | None:
    """Return the printer of a kind in a minor."""
    own, order = kind.printer, _ORDERS.get(kind.resource.group_kind)
    if own is None or order is None or minors.is_before(order.until, minor):
        return own
    columns = {column.name: column for column in own.columns} | {SECRETS: Column(name=SECRETS)}
    names = order.columns or tuple(column.name for column in own.columns if column.name not in order.left_out)
    own_names = [column.name for column in own.columns]

    def cells(tree: Tree, now: datetime) -> list[Any]:
        cells_by_name = dict(zip(own_names, own.cells(tree, now), strict=True))
        cells_by_name[SECRETS] = len(tree.get("secrets") or ())
        return [cells_by_name[name] for name in names]

    return replace(own, columns=[columns[name] for name in names], cells=cells)
