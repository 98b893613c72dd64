"""Defaults of scheduling.k8s.io: PriorityClasses."""

from typing import Final

from apiserver.defaults.table import of

DEFAULTS: Final = of(
    "io.k8s.api.scheduling.v1", {"PriorityClass": {"preemptionPolicy": "PreemptLowerPriority"}}
)
