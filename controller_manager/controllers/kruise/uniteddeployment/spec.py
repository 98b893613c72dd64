"""A UnitedDeployment as its controller sees it: the fields that it decides by, with what their absence means."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from msgspec import Struct

from mockube.apimachinery import labels
from mockube.apimachinery.intstr import IntOrString
from mockube.apimachinery.labels import Selector
from mockube.apimachinery.timestamps import span_of
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.controllers.kruise.uniteddeployment.adapters.adapter import Adapter
from mockube.controller_manager.controllers.kruise.uniteddeployment.adapters.rows import ADAPTERS

_REVISION_HISTORY_LIMIT: Final = 10
_RESCHEDULE_CRITICAL_SECONDS: Final = 30
_UNSCHEDULABLE_SECONDS: Final = 300


class UnknownTemplate(ValueError):
    """The template has no kind of workload."""


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
    """What happens to pods for which no node is found."""

    is_adaptive: bool
    """They are to be elsewhere."""
    reserves: bool
    """They stay, and others replace them until they run."""
    critical: timedelta
    """How long a pod may find no node until that counts."""
    unschedulable: timedelta
    """How long a subset is avoided then; how long a reserved pod must be ready until it counts again."""

    @classmethod
    def of(cls, topology: ReadOnlyTree) -> "Schedule":
        strategy = topology.get("scheduleStrategy") or {}
        adaptive = strategy.get("adaptive") or {}
        is_adaptive = strategy.get("type") == "Adaptive"
        return cls(
            is_adaptive=is_adaptive,
            reserves=is_adaptive and bool(adaptive.get("reserveUnschedulablePods")),
            critical=_seconds(adaptive.get("rescheduleCriticalSeconds"), _RESCHEDULE_CRITICAL_SECONDS),
            unschedulable=_seconds(adaptive.get("unschedulableDuration"), _UNSCHEDULABLE_SECONDS),
        )


class UnitedView(Struct, frozen=True, kw_only=True, eq=False):
    object: ReadOnlyTree
    key: Key
    selector: Selector
    replicas: int | None
    """None if it is what its subsets add up to."""
    adapter: Adapter
    template: ReadOnlyTree
    """Metadata and spec of the workloads."""
    subsets: tuple[SubsetSpec, ...]
    schedule: Schedule
    partitions: Mapping[str, int]
    """By subset, how many pods keep the revision that they have."""
    revision_history_limit: int

    @classmethod
    def of(cls, tree: ReadOnlyTree) -> "UnitedView":
        """The view, or `SelectorError`, or `UnknownTemplate`."""
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
            revision_history_limit=_REVISION_HISTORY_LIMIT if limit is None else limit,
        )

    @property
    def status(self) -> ReadOnlyTree:
        return self.object.get("status") or {}


def selector_of(tree: ReadOnlyTree) -> Selector:
    """The selector of its own workloads, or `SelectorError`."""
    return labels.from_label_selector(tree["spec"].get("selector"))


def _partitions(strategy: ReadOnlyTree) -> Mapping[str, int]:
    is_manual = (strategy.get("type") or "Manual") == "Manual"
    return (strategy.get("manualUpdate") or {}).get("partitions") or {} if is_manual else {}


def _seconds(value: int | None, absent: int) -> timedelta:
    return span_of(absent if value is None else value)
