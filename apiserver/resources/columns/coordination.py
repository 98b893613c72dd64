"""The columns of coordination.k8s.io."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from apimachinery import meta
from apiserver.resources.columns import ages
from apiserver.resources.columns.parts import text
from apiserver.wire.table import AGE, NAME, Column, Printer, Tree


def _lease(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), text(tree, "spec", "holderIdentity"), ages.age(tree, now)]


PRINTERS: Final[Mapping[str, Printer]] = {
    "Lease": Printer(columns=(NAME, Column(name="Holder"), AGE), cells=_lease),
}
