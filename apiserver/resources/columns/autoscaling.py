"""The columns of autoscaling."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from apimachinery import meta
from apiserver.resources.columns import ages, metrics_v1
from apiserver.resources.columns.metrics import targets
from apiserver.resources.columns.parts import number, text
from apiserver.wire.table import AGE, NAME, Column, Printer, Tree


def _horizontal_pod_autoscaler(tree: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(tree),
        f"{text(tree, 'spec', 'scaleTargetRef', 'kind')}/{text(tree, 'spec', 'scaleTargetRef', 'name')}",
        targets(metrics_v1.specs(tree), metrics_v1.statuses(tree)),
        text(tree, "spec", "minReplicas", default="<unset>"),
        number(tree, "spec", "maxReplicas"),
        number(tree, "status", "currentReplicas"),
        ages.age(tree, now),
    ]


def _scale(tree: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(tree),
        number(tree, "spec", "replicas"),
        number(tree, "status", "replicas"),
        ages.age(tree, now),
    ]


PRINTERS: Final[Mapping[str, Printer]] = {
    "HorizontalPodAutoscaler": Printer(
        columns=(
            NAME,
            Column(name="Reference"),
            Column(name="Targets"),
            Column(name="MinPods"),
            Column(name="MaxPods"),
            Column(name="Replicas"),
            AGE,
        ),
        cells=_horizontal_pod_autoscaler,
    ),
    "Scale": Printer(
        columns=(
            Column(name="Name"),
            Column(name="Desired", type="integer"),
            Column(name="Available", type="integer"),
            AGE,
        ),
        cells=_scale,
    ),
}
