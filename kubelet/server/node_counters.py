"""Counts what the kubelets of scraped nodes do. A kubelet counts from its first scrape on: most are never scraped."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Change
from mockube.client.component import ComponentContext
from mockube.client.podview import PodView
from mockube.component_base.clock import Clock
from mockube.component_base.metrics import MetricsRegistry

from . import metric_families as families

_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)
_PLUGINS: Final = {
    "configMap": "kubernetes.io/configmap",
    "secret": "kubernetes.io/secret",
    "downwardAPI": "kubernetes.io/downward-api",
    "emptyDir": "kubernetes.io/empty-dir",
    "projected": "kubernetes.io/projected",
    "hostPath": "kubernetes.io/host-path",
    "nfs": "kubernetes.io/nfs",
    "iscsi": "kubernetes.io/iscsi",
}


class NodeCounters:
    """What the kubelet of one node counts."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.monotonic()
        self.metrics = metrics = MetricsRegistry()
        self._workers = metrics.distributions(families.POD_WORKER_DURATION)
        self._starts = metrics.distributions(families.POD_START_DURATION).of()
        self._sli_starts = metrics.distributions(families.POD_START_SLI_DURATION).of()
        self._total_starts = metrics.distributions(families.POD_START_TOTAL_DURATION).of()
        self._operations = metrics.numbers(families.RUNTIME_OPERATIONS)
        self._operation_durations = metrics.distributions(families.RUNTIME_OPERATION_DURATION)
        self._cgroups = metrics.distributions(families.CGROUP_MANAGER_DURATION)
        self._storage = metrics.distributions(families.STORAGE_OPERATION_DURATION)
        self._relists = metrics.distributions(families.PLEG_RELIST_DURATION).of()
        self._intervals = metrics.distributions(families.PLEG_RELIST_INTERVAL).of()
        metrics.on_collect(self._relist)

    def record_sync(self, pod: ReadOnlyTree, seconds: float) -> None:
        """Record the synchronization of a pod, as it was before."""
        started = bool((pod.get("status") or {}).get("startTime"))
        is_ending = bool(meta.metadata(pod).get("deletionTimestamp"))
        self._workers.observe(seconds, "kill" if is_ending else "sync" if started else "create")

    def record_change(self, old: ReadOnlyTree, new: ReadOnlyTree) -> None:
        """Record what a change of a pod's status shows: containers that started or ended, and the start of the pod."""
        before, after = _runs(old), _runs(new)
        started = [run for run in after if run not in before]
        if started and not before:
            self._cgroups.observe(0, "create")
            self._count_operation("run_podsandbox")
            for volume in (new.get("spec") or {}).get("volumes") or ():
                self._storage.observe(0, plugin_of(volume), "volume_mount", "success", "false")
        for _ in started:
            self._count_operation("create_container")
            self._count_operation("start_container")
        for run in before.keys() - after.keys():
            if run[0] in {name for name, _ in after} or not after:
                self._count_operation("stop_container")
        if _has_started(new) and not _has_started(old):
            self._record_start(new, max(after.values()))

    def record_removal(self) -> None:
        """Record that a pod is gone."""
        self._count_operation("stop_podsandbox")
        self._count_operation("remove_podsandbox")
        self._cgroups.observe(0, "destroy")

    def _record_start(self, pod: ReadOnlyTree, running_at: datetime) -> None:
        seen_at = parse_time(pod["status"]["startTime"])
        created_at = meta.creation_timestamp(pod) or seen_at
        self._starts.observe((running_at - seen_at).total_seconds())
        for durations in (self._sli_starts, self._total_starts):
            durations.observe((running_at - created_at).total_seconds())

    def _count_operation(self, name: str) -> None:
        self._operations.add(1, name)
        self._operation_durations.observe(0, name)

    def _relist(self) -> None:
        """Count the relists of a kubelet until now, which would be one in a second."""
        relists = int(self._clock.monotonic() - self._began)
        self._relists.counts[0] = relists
        self._intervals.counts[families.PLEG_RELIST_INTERVAL.buckets.index(1.0)] = relists
        self._intervals.total = relists


class UsageTotal(NamedTuple):
    amount: float
    at: datetime


class UsageTotals:
    """The cumulative usage of a node and its pods until a time."""

    def __init__(self, at: datetime = _BEGINNING) -> None:
        self.at = at
        self.containers: dict[tuple[str, str, str], UsageTotal] = {}
        """By the uid of a pod, the name of a container and a resource."""
        self.sums: dict[str, dict[str, float]] = {}
        """By the uid of a pod, or "" for the node, and by resource. They do not fall when a container or a pod ends."""

    def begin_sum(self, uid: str, before: "UsageTotals") -> dict[str, float]:
        """Begin a sum with its value at an earlier time, and return it."""
        self.sums[uid] = dict(before.sums.get(uid, {}))
        return self.sums[uid]


class KubeletCounters:
    """The counters of the nodes that were scraped."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._nodes: dict[str, NodeCounters] = {}
        self.usage_totals: dict[str, UsageTotals] = {}
        """By node, the usage until its last measurement."""

    def of(self, node: str) -> NodeCounters:
        """Return the counters of a node, which count from the first call on."""
        if node not in self._nodes:
            self._nodes[node] = NodeCounters(self._clock)
        return self._nodes[node]

    def find(self, node: str) -> NodeCounters | None:
        """Return the counters of a node; None if it was not scraped."""
        return self._nodes.get(node)

    def on_pod_change(self, change: Change) -> None:
        """Record a change of a pod for its node, if it was scraped."""
        old: PodView | None = change.old
        new: PodView | None = change.new
        if old is None:
            return
        if new is None or new.uid != old.uid:
            if (counters := self.find(old.node)) is not None:
                counters.record_removal()
        elif (counters := self.find(new.node)) is not None:
            counters.record_change(old.object, new.object)

    def forget(self, node: str) -> None:
        self._nodes.pop(node, None)
        self.usage_totals.pop(node, None)


def kubelet_counters(context: ComponentContext) -> KubeletCounters:
    """Return the counters of the manager's kubelets; the first call creates them."""
    counters: KubeletCounters | None = context.shared.get(KubeletCounters)
    if counters is None:
        counters = context.shared[KubeletCounters] = KubeletCounters(context.clock)
    return counters


def plugin_of(volume: ReadOnlyTree) -> str:
    """Return the name of the plugin that mounts a volume."""
    found = next((_PLUGINS[source] for source in _PLUGINS if source in volume), None)
    return found or "kubernetes.io/csi"


def _runs(pod: ReadOnlyTree) -> Mapping[tuple[str, int], datetime]:
    """Return the start times of the running containers, by name and number of restarts."""
    return {
        (run["name"], run.get("restartCount") or 0): parse_time(run["state"]["running"]["startedAt"])
        for run in _statuses(pod)
        if ((run.get("state") or {}).get("running") or {}).get("startedAt")
    }


def _has_started(pod: ReadOnlyTree) -> bool:
    """Return whether all containers of a pod run."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return bool(statuses) and all((run.get("state") or {}).get("running") for run in statuses)


def _statuses(pod: ReadOnlyTree) -> Iterable[ReadOnlyTree]:
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
