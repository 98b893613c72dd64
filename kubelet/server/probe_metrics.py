"""`/metrics/probes` of a simulated node: the results and durations of its pods' probes."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import pairwise

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.metrics import Buckets, Collected, LabelValues
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.runs import container_status
from mockube.kubelet.pod_lifecycle.container_context import ContainerContext
from mockube.kubelet.pod_lifecycle.probe_results import probe_results
from mockube.kubelet.pod_lifecycle.probe_totals import ProbeTotals, simulated_totals
from mockube.kubelet.pod_lifecycle.probing import Probe
from mockube.kubelet.probes.totals import ProbeRecords, TotalsByProbe

from . import metric_families as families
from .node_usage import started_at


def probe_metrics(
    pods: Iterable[ReadOnlyTree],
    now: datetime,
    records: ProbeRecords,
    context: ContainerContext,
) -> Iterator[Collected]:
    """Yield the metrics of `/metrics/probes`. The results that no record has are computed."""
    entries = [
        (_labels(pod, container, probe), meta.uid(pod), totals)
        for pod in pods
        for (container, probe), totals in {
            **_totals(pod, now, records.processes.of(meta.uid(pod)), context),
            **records.observed.of(meta.uid(pod)),
        }.items()
    ]
    durations = [(labels, _durations(totals)) for labels, _, totals in entries if totals.successful]
    yield Collected(families.PROBE_DURATION, durations)
    yield Collected(
        families.PROBES,
        [
            ((*labels, uid, result), count)
            for labels, uid, totals in entries
            for result, count in (("failed", totals.failed), ("successful", totals.successful))
            if count
        ],
    )


def _totals(
    pod: ReadOnlyTree, now: datetime, process_totals: TotalsByProbe, context: ContainerContext
) -> TotalsByProbe:
    script = script_of(meta.annotations(pod))
    process_names = {container for container, _ in process_totals}
    all_totals = dict(process_totals)
    for container in _probed_containers(pod["spec"]):
        name = container["name"]
        since = None if name in process_names else started_at(pod, name)
        if since is not None:
            restarts = (container_status(pod, name) or {}).get("restartCount") or 0
            results = probe_results(pod, container, script, context, restarts=restarts)
            seconds = (now - since).total_seconds()
            totals = simulated_totals(container, results, script.ready_after, seconds)
            all_totals |= {(name, probe): total for probe, total in totals.items()}
    return all_totals


def _probed_containers(spec: ReadOnlyTree) -> Iterator[ReadOnlyTree]:
    yield from spec["containers"]
    yield from (
        container
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    )


def _labels(pod: ReadOnlyTree, container: str, probe: Probe) -> LabelValues:
    return container, meta.namespace(pod), meta.name(pod), probe.title


def _durations(totals: ProbeTotals) -> Buckets:
    cumulative = (0, *totals.bucket_counts, totals.successful)
    return Buckets([after - before for before, after in pairwise(cumulative)], totals.seconds)
