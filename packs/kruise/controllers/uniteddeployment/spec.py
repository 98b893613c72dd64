"""The fields of a UnitedDeployment that its controller reads, with their defaults."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from msgspec import Struct

from mockube.apimachinery.intstr import IntOrString
from mockube.apimachinery.labels import Selector
from mockube.apimachinery.timestamps import span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.resources import Key
from mockube.controller_manager.workloads.ownership import selector_of

from .adapters import ADAPTERS
from .adapters.adapter import Adapter

_DEFAULT_REVISION_HISTORY_LIMIT: Final = 10
_DEFAULT_RESCHEDULE_CRITICAL_SECONDS: Final = 30
_DEFAULT_UNSCHEDULABLE_SECONDS: Final = 300


class UnknownTemplate(ValueError):
    """The template is of no known kind of workload."""


class SubsetSpec(Struct, frozen=True, kw_only=True):
    name: str
    replicas: IntOrString | None
    min_replicas: IntOrString | None
    max_replicas: IntOrString | None
    node_selector_term: ReadOnlyTree
    tolerations: Sequence[ReadOnlyTree]
    patch: ReadOnlyTree

    @classmethod
    def of(cls, spec: ReadOnlyTree) -> "SubsetSpec":
        return cls(
            name=spec["name"],
            replicas=spec.get("replicas"),
            min_replicas=spec.get("minReplicas"),
            max_replicas=spec.get("maxReplicas"),
            node_selector_term=spec.get("nodeSelectorTerm") or {},
            tolerations=spec.get("tolerations") or (),
            patch=spec.get("patch") or {},
        )


class Schedule(Struct, frozen=True, kw_only=True):
    """The schedule strategy: the handling of unschedulable pods."""

    is_adaptive: bool
    """Whether other subsets get their replicas."""
    reserves: bool
    """Whether they stay as reserved pods, and have replacements until they run."""
    critical: timedelta
    """How long a pod may be unschedulable until it is rescheduled."""
    unschedulable: timedelta
    """How long a subset counts as unschedulable; how long a reserved pod must be ready until it is no longer reserved."""

    @classmethod
    def of(cls, topology: ReadOnlyTree) -> "Schedule":
        strategy = topology.get("scheduleStrategy") or {}
        adaptive = strategy.get("adaptive") or {}
        is_adaptive = strategy.get("type") == "Adaptive"
        return cls(
            is_adaptive=is_adaptive,
            reserves=is_adaptive and bool(adaptive.get("reserveUnschedulablePods")),
            critical=_seconds(
                adaptive.get("rescheduleCriticalSeconds"), _DEFAULT_RESCHEDULE_CRITICAL_SECONDS
            ),
            unschedulable=_seconds(adaptive.get("unschedulableDuration"), _DEFAULT_UNSCHEDULABLE_SECONDS),
        )


class UnitedView(Struct, frozen=True, kw_only=True, eq=False):
    object: ReadOnlyTree
    key: Key
    selector: Selector
    replicas: int | None
    """None if every subset specifies its replicas."""
    adapter: Adapter
    template: ReadOnlyTree
    """The metadata and spec of the workloads."""
    subsets: tuple[SubsetSpec, ...]
    schedule: Schedule
    partitions: Mapping[str, int]
    """The number of pods that keep their revision, by subset."""
    revision_history_limit: int

    @classmethod
    def of(cls, tree: ReadOnlyTree) -> "UnitedView":
        """Read a UnitedDeployment; raise `SelectorError` or `UnknownTemplate` if it is invalid."""
        spec = tree["spec"]
        topology = spec.get("topology") or {}
        templates = spec.get("template") or {}
        adapter = next((candidate for candidate in ADAPTERS if templates.get(candidate.template)), None)
        if adapter is None:
            raise UnknownTemplate
        limit = spec.get("revisionHistoryLimit")
        return cls(
            object=tree,
            key=Key.of(tree),
            selector=selector_of(tree),
            replicas=spec.get("replicas"),
            adapter=adapter,
            template=templates[adapter.template],
            subsets=tuple(map(SubsetSpec.of, topology.get("subsets") or ())),
            schedule=Schedule.of(topology),
            partitions=_partitions(spec.get("updateStrategy") or {}),
            revision_history_limit=_DEFAULT_REVISION_HISTORY_LIMIT if limit is None else limit,
        )

    @property
    def status(self) -> ReadOnlyTree:
        return self.object.get("status") or {}


def _partitions(strategy: ReadOnlyTree) -> Mapping[str, int]:
    is_manual = (strategy.get("type") or "Manual") == "Manual"
    return (strategy.get("manualUpdate") or {}).get("partitions") or {} if is_manual else {}


def _seconds(value: int | None, absent: int) -> timedelta:
    return span_of(absent if value is None else value)
