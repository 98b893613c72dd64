"""The metrics of the HorizontalPodAutoscaler controller."""

from collections.abc import Callable
from typing import Final

from mockube.client.resources import Key
from mockube.component_base.metrics import MetricsRegistry
from mockube.controller_manager import metric_families as families

UP: Final = "scale_up"
DOWN: Final = "scale_down"
NONE: Final = "none"
SPEC: Final = "spec"
INTERNAL: Final = "internal"


def action(old: int, new: int) -> str:
    return UP if new > old else DOWN if new < old else NONE


class Monitor:
    def __init__(self, count: Callable[[], int], metrics: MetricsRegistry) -> None:
        self._count = count
        self.desired: dict[Key, int] = {}
        self.reconciliations = metrics.timed_operations(
            families.HPA_RECONCILES, families.HPA_RECONCILE_DURATION
        )
        self.computations = metrics.timed_operations(
            families.HPA_COMPUTATIONS, families.HPA_COMPUTATION_DURATION
        )
        self._number = metrics.numbers(families.HPA_NUMBER)
        self._desired = metrics.numbers(families.HPA_DESIRED)

    def update(self) -> None:
        self._number.set(self._count())
        self._desired.replace((tuple(key), replicas) for key, replicas in self.desired.items())
