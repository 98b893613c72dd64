"""The metrics of a simulated kubelet that are computed at a scrape, by path."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from mockube.apimachinery import meta, quantity
from mockube.apimachinery.pods import claim_name, every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.metrics import Collected, Family, LabelValues
from mockube.component_base.process_metrics import build_info
from mockube.container_runtime.runs import container_status

from . import metric_families as families
from .node_counters import plugin_of
from .node_usage import Measurement, ScrapedNode, started_at

CPU_PERIOD: Final = 100_000.0
"""The period of a container's CPU quota in microseconds."""
PERIODS_IN_SECOND: Final = 1_000_000 / CPU_PERIOD
MIN_SHARES: Final = 2.0
SHARES_OF_CORE: Final = 1024
BYTES_OF_INODE: Final = 16_384
"""The bytes for each inode that mkfs.ext4 assumes."""
INTERFACE: Final = "eth0"
DEVICE: Final = "/dev/vda"

_Subject = tuple[LabelValues, ReadOnlyTree, str]
"""The label values of a node, a pod or a container, the node or the pod, and the name of the container."""


def resource_metrics(measurement: Measurement) -> Iterator[Collected]:
    """Yield the metrics of `/metrics/resource`."""
    subjects: Mapping[str, list[_Subject]] = {
        "container": [
            ((container["name"], meta.namespace(pod), meta.name(pod)), pod, container["name"])
            for pod, container in measurement.running_containers()
        ],
        "node": [((), measurement.node, "")],
        "pod": [((meta.namespace(pod), meta.name(pod)), pod, "") for pod in measurement.pods],
    }
    for dimension, found in subjects.items():
        cpu, memory = families.USAGE[dimension]
        yield Collected(
            cpu, [(labels, measurement.cumulative_usage(obj, "cpu", name)) for labels, obj, name in found]
        )
        yield Collected(
            memory, [(labels, measurement.usage_of(obj, "memory", name)) for labels, obj, name in found]
        )
    yield Collected(families.CONTAINER_STARTED, [*_start_times(subjects["container"])])
    yield Collected(families.SCRAPE_ERROR, [((), 0.0)])


def _start_times(containers: Iterable[_Subject]) -> Iterator[tuple[LabelValues, float]]:
    for labels, pod, name in containers:
        started = started_at(pod, name)
        if started is not None:
            yield labels, started.timestamp()


# --- cAdvisor


def cadvisor_metrics(measurement: Measurement) -> Iterator[Collected]:
    """Yield the metrics of `/metrics/cadvisor`: those of the node, of each pod and of each container."""
    yield from _machine_metrics(measurement)
    running = [*measurement.running_containers()]
    containers = [(_group_labels(_container_group(*pair), *pair), *pair) for pair in running]
    container_subjects: list[_Subject] = [(labels, pod, each["name"]) for labels, pod, each in containers]
    groups: list[_Subject] = [
        (_group_labels("/"), measurement.node, ""),
        *((_group_labels(_pod_group(pod), pod), pod, "") for pod in measurement.pods),
        *container_subjects,
    ]
    cpu = [
        ((*labels, "total"), measurement.cumulative_usage(obj, "cpu", name)) for labels, obj, name in groups
    ]
    yield Collected(families.CPU_USAGE, cpu)
    now = measurement.at.timestamp()
    yield Collected(families.LAST_SEEN, [(labels, now) for labels, _, _ in groups])
    used = [(labels, measurement.usage_of(obj, "memory", name)) for labels, obj, name in groups]
    for family in families.MEMORY:
        yield Collected(family, used)
    for family in families.UNUSED_MEMORY:
        yield Collected(family, [(labels, 0) for labels, _, _ in groups])
    for family in families.FILE_SYSTEM:
        yield Collected(family, [((*labels, DEVICE), 0) for labels, _, _ in groups])
    for family, limit in _LIMITS:
        values = [(labels, limit(container)) for labels, _, container in containers]
        yield Collected(family, [(labels, value) for labels, value in values if value is not None])
    starts = [*_start_times(container_subjects)]
    yield Collected(families.CONTAINER_START_TIME, starts)
    yield from _throttling(measurement, containers, dict(starts))
    yield from _network(measurement)


def _throttling(
    measurement: Measurement,
    containers: Iterable[tuple[LabelValues, ReadOnlyTree, ReadOnlyTree]],
    starts: Mapping[LabelValues, float],
) -> Iterator[Collected]:
    """Yield the periods of the quotas of containers with a CPU limit. Simulated usage is never throttled."""
    now = measurement.at.timestamp()
    limited = [
        labels
        for labels, _, container in containers
        if labels in starts and limit_of(container, "cpu") is not None
    ]
    periods = [(labels, int((now - starts[labels]) * PERIODS_IN_SECOND)) for labels in limited]
    yield Collected(families.CFS_PERIODS, periods)
    yield Collected(families.CFS_THROTTLED, [(labels, 0) for labels in limited])


def _network(measurement: Measurement) -> Iterator[Collected]:
    """Yield the traffic of the node, and of each pod with a network of its own."""
    labels = [
        ("/", "", INTERFACE, "", "", ""),
        *(
            (_pod_group(pod), "", INTERFACE, "", meta.namespace(pod), meta.name(pod))
            for pod in measurement.pods
            if not (pod.get("spec") or {}).get("hostNetwork")
        ),
    ]
    for family in families.NETWORK:
        yield Collected(family, [(values, 0) for values in labels])


def _machine_metrics(measurement: Measurement) -> Iterator[Collected]:
    status = measurement.node.get("status") or {}
    info, capacity = status.get("nodeInfo") or {}, status.get("capacity") or {}
    versions = ("", "", "", info.get("kernelVersion", ""), info.get("osImage", ""))
    yield Collected(families.VERSION_INFO, [(versions, 1)])
    machine = tuple(info.get(field, "") for field in ("bootID", "machineID", "systemUUID"))
    for family, resource in ((families.MACHINE_CORES, "cpu"), (families.MACHINE_MEMORY, "memory")):
        yield Collected(family, [(machine, quantity.number_or(capacity.get(resource), 0.0))])


# --- the kubelet's own


def kubelet_metrics(scraped: ScrapedNode) -> Iterator[Collected]:
    """Yield the metrics of `/metrics` that are not counted."""
    node = scraped.node
    version = ((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion", "")
    running = sum((pod.get("status") or {}).get("phase") == "Running" for pod in scraped.pods)
    for family in (families.ACTIVE_PODS, families.DESIRED_PODS):
        yield Collected(family, [(("",), len(scraped.pods)), (("true",), 0)])
    yield Collected(families.NODE_NAME, [((meta.name(node),), 1)])
    yield Collected(families.RUNNING_CONTAINERS, _container_states(scraped.pods))
    yield Collected(families.RUNNING_PODS, [((), running)])
    yield build_info(version)
    created = meta.creation_timestamp(node)
    if created is not None:
        yield Collected(families.START_TIME, [((), created.timestamp())])
    yield Collected(families.TOTAL_VOLUMES, _volumes(scraped.pods))
    yield from _volume_stats(scraped)


def _container_states(pods: Iterable[ReadOnlyTree]) -> list[tuple[LabelValues, float]]:
    states = {"created": 0, "exited": 0, "running": 0}
    for pod in pods:
        for container in every_container(pod.get("spec") or {}):
            state = (container_status(pod, container["name"]) or {}).get("state") or {}
            states["running"] += "running" in state
            states["exited"] += "terminated" in state
    return [((state,), count) for state, count in states.items()]


def _volumes(pods: Iterable[ReadOnlyTree]) -> list[tuple[LabelValues, float]]:
    desired, mounted = Counter[str](), Counter[str]()
    for pod in pods:
        plugins = [plugin_of(volume) for volume in (pod.get("spec") or {}).get("volumes") or ()]
        desired.update(plugins)
        if (pod.get("status") or {}).get("phase") == "Running":
            mounted.update(plugins)
    states = (("desired_state_of_world", desired), ("actual_state_of_world", mounted))
    return [((plugin, state), count) for state, counts in states for plugin, count in counts.items()]


def volume_capacities(scraped: ScrapedNode) -> Iterator[tuple[ReadOnlyTree, str, str, float]]:
    """Yield the volumes that are claims: the pod, the volume's name, the claim's name, and its bytes."""
    for pod in scraped.pods:
        for volume in (pod.get("spec") or {}).get("volumes") or ():
            if "persistentVolumeClaim" in volume or "ephemeral" in volume:
                name = claim_name(pod, volume)
                claim = scraped.find_claim(meta.namespace(pod), name) or {}
                size = quantity.number_or(
                    ((claim.get("status") or {}).get("capacity") or {}).get("storage"), None
                )
                if size is not None:
                    yield pod, volume["name"], name, size


def _volume_stats(scraped: ScrapedNode) -> Iterator[Collected]:
    sizes = {(meta.namespace(pod), claim): size for pod, _, claim, size in volume_capacities(scraped)}
    inodes = [(labels, size // BYTES_OF_INODE) for labels, size in sizes.items()]
    unused = [(labels, 0) for labels in sizes]
    for family in (families.VOLUME_CAPACITY, families.VOLUME_AVAILABLE):
        yield Collected(family, [*sizes.items()])
    for family in (families.VOLUME_INODES, families.VOLUME_INODES_FREE):
        yield Collected(family, inodes)
    for family in (families.VOLUME_USED, families.VOLUME_INODES_USED):
        yield Collected(family, unused)


USAGE_METRICS: Final[Mapping[str, Callable[[Measurement], Iterator[Collected]]]] = {
    "/metrics/cadvisor": cadvisor_metrics,
    "/metrics/resource": resource_metrics,
}
"""The functions that yield metrics of usage, by path."""


def _group_labels(
    id_: str, pod: ReadOnlyTree | None = None, container: ReadOnlyTree | None = None
) -> LabelValues:
    """Return cAdvisor's label values of a control group; a label that does not apply is empty."""
    name = container["name"] if container is not None else ""
    status = (container_status(pod, name) or {}) if pod is not None and name else {}
    return (
        name,
        id_,
        container["image"] if container is not None else "",
        (status.get("containerID") or "").partition("://")[2],
        meta.namespace(pod) if pod is not None else "",
        meta.name(pod) if pod is not None else "",
    )


def _pod_group(pod: ReadOnlyTree) -> str:
    qos_class = (pod.get("status") or {}).get("qosClass") or "BestEffort"
    parent = "/kubepods" if qos_class == "Guaranteed" else f"/kubepods/{qos_class.lower()}"
    return f"{parent}/pod{meta.uid(pod)}"


def _container_group(pod: ReadOnlyTree, container: ReadOnlyTree) -> str:
    status = container_status(pod, container["name"]) or {}
    container_id = (status.get("containerID") or "").partition("://")[2]
    return f"{_pod_group(pod)}/{container_id or container['name']}"


def limit_of(container: ReadOnlyTree, resource: str, field: str = "limits") -> float | None:
    return quantity.number_or(((container.get("resources") or {}).get(field) or {}).get(resource), None)


def _cpu_quota(container: ReadOnlyTree) -> float | None:
    limit = limit_of(container, "cpu")
    return None if limit is None else math.floor(limit * CPU_PERIOD)


def _cpu_period(container: ReadOnlyTree) -> float | None:
    return None if limit_of(container, "cpu") is None else CPU_PERIOD


def _cpu_shares(container: ReadOnlyTree) -> float:
    requested = limit_of(container, "cpu", "requests")
    requested = limit_of(container, "cpu") if requested is None else requested
    return max(math.floor((requested or 0.0) * SHARES_OF_CORE), MIN_SHARES)


def _memory_limit(container: ReadOnlyTree) -> float:
    return limit_of(container, "memory") or 0.0


_LIMITS: Final[tuple[tuple[Family, Callable[[ReadOnlyTree], float | None]], ...]] = (
    (families.SPEC_CPU_PERIOD, _cpu_period),
    (families.SPEC_CPU_QUOTA, _cpu_quota),
    (families.SPEC_CPU_SHARES, _cpu_shares),
    (families.SPEC_MEMORY_LIMIT, _memory_limit),
)
