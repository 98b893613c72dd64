"""The columns of scheduling.k8s.io."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from apimachinery import meta
from apiserver.resources.columns import ages
from apiserver.resources.columns.parts import flag, number, text
from apiserver.wire.table import AGE, NAME, Column, Printer, Tree


def _priority_class(tree: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(tree),
        number(tree, "value"),
        flag(tree, "globalDefault"),
        ages.age(tree, now),
        text(tree, "preemptionPolicy"),
    ]


PRINTERS: Final[Mapping[str, Printer]] = {
    "PriorityClass": Printer(
        columns=(
            NAME,
            Column(name="Value", type="integer"),
            Column(name="Global-Default", type="boolean"),
            AGE,
            Column(name="PreemptionPolicy"),
        ),
        cells=_priority_class,
    ),
}
