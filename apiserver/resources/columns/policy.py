"""The columns of policy."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from apimachinery import meta
from apiserver.resources.columns import ages
from apiserver.resources.columns.parts import number, text
from apiserver.wire.table import AGE, NAME, Column, Printer, Tree


def _pod_disruption_budget(tree: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(tree),
        text(tree, "spec", "minAvailable", default="N/A"),
        text(tree, "spec", "maxUnavailable", default="N/A"),
        number(tree, "status", "disruptionsAllowed"),
        ages.age(tree, now),
    ]


PRINTERS: Final[Mapping[str, Printer]] = {
    "PodDisruptionBudget": Printer(
        columns=(
            NAME,
            Column(name="Min Available"),
            Column(name="Max Unavailable"),
            Column(name="Allowed Disruptions", type="integer"),
            AGE,
        ),
        cells=_pod_disruption_budget,
    ),
}
