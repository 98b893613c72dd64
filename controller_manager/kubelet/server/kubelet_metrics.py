"""The metrics of a simulated kubelet, by path."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from mockube.apimachinery import meta, quantity
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.metrics import Collected
from mockube.controller_manager.kubelet.containers.runs import container_status

from .metric_objects import Labels, family_of
from .node_usage import Measurement, started_at

CPU_PERIOD: Final = 100_000.0
"""The period of a container's CPU quota in microseconds."""
MIN_SHARES: Final = 2.0
SHARES_OF_CORE: Final = 1024


def resource_metrics(measurement: Measurement) -> Iterator[Collected]:
    """Yield the metrics of `/metrics/resource`."""
    subjects_by_dimension: Mapping[str, Sequence[tuple[Labels, ReadOnlyTree, str]]] = {
        "container": [
            ([("container", container["name"]), *_pod_labels(pod)], pod, container["name"])
            for pod, container in measurement.running_containers()
        ],
        "node": [([], measurement.node, "")],
        "pod": [(_pod_labels(pod), pod, "") for pod in measurement.pods],
    }
    for dimension, subjects in subjects_by_dimension.items():
        cpu = [(labels, measurement.cumulative_usage(obj, "cpu", name)) for labels, obj, name in subjects]
        yield family_of(
            f"{dimension}_cpu_usage_seconds_total",
            "counter",
            f"[STABLE] Cumulative cpu time consumed by the {dimension} in core-seconds",
            cpu,
        )
        memory = [(labels, measurement.usage_of(obj, "memory", name)) for labels, obj, name in subjects]
        yield family_of(
            f"{dimension}_memory_working_set_bytes",
            "gauge",
            f"[STABLE] Current working set of the {dimension} in bytes",
            memory,
        )
        if dimension == "container":
            text = "[STABLE] Start time of the container since unix epoch in seconds"
            yield family_of("container_start_time_seconds", "gauge", text, list(_start_times(subjects)))
    text = "[STABLE] 1 if there was an error while getting container metrics, 0 otherwise"
    yield family_of("resource_scrape_error", "gauge", text, [((), 0.0)])


def _start_times(containers: Iterable[tuple[Labels, ReadOnlyTree, str]]) -> Iterator[tuple[Labels, float]]:
    for labels, pod, name in containers:
        started = started_at(pod, name)
        if started is not None:
            yield labels, started.timestamp()


def cadvisor_metrics(measurement: Measurement) -> Iterator[Collected]:
    """Yield the metrics of `/metrics/cadvisor`: those of the node, of each pod and of each container."""
    yield from _machine_metrics(measurement)
    containers = list(measurement.running_containers())
    container_rows = [(_group_labels(_container_group(*pair), *pair), *pair) for pair in containers]
    groups: list[tuple[Labels, ReadOnlyTree, str]] = [(_group_labels("/"), measurement.node, "")]
    groups += [(_group_labels(_pod_group(pod), pod), pod, "") for pod in measurement.pods]
    groups += [(labels, pod, container["name"]) for labels, pod, container in container_rows]
    yield family_of(
        "container_cpu_usage_seconds_total",
        "counter",
        "Cumulative cpu time consumed in seconds.",
        [
            ([*labels[:1], ("cpu", "total"), *labels[1:]], measurement.cumulative_usage(obj, "cpu", name))
            for labels, obj, name in groups
        ],
    )
    now = measurement.at.timestamp()
    last_seen = [(labels, now) for labels, _, _ in groups]
    yield family_of(
        "container_last_seen", "gauge", "Last time a container was seen by the exporter", last_seen
    )
    for name, text in _MEMORY:
        samples = [
            (labels, measurement.usage_of(obj, "memory", container_name))
            for labels, obj, container_name in groups
        ]
        yield family_of(name, "gauge", text, samples)
    for name, text, limit in _LIMITS:
        values = [(labels, limit(container)) for labels, _, container in container_rows]
        yield family_of(
            name, "gauge", text, [(labels, value) for labels, value in values if value is not None]
        )
    text = "Start time of the container since unix epoch in seconds."
    starts = _start_times((labels, pod, container["name"]) for labels, pod, container in container_rows)
    yield family_of("container_start_time_seconds", "gauge", text, list(starts))


def _machine_metrics(measurement: Measurement) -> Iterator[Collected]:
    status = measurement.node.get("status") or {}
    info, capacity = status.get("nodeInfo") or {}, status.get("capacity") or {}
    versions = [
        ("cadvisorRevision", ""),
        ("cadvisorVersion", ""),
        ("dockerVersion", ""),
        ("kernelVersion", info.get("kernelVersion", "")),
        ("osVersion", info.get("osImage", "")),
    ]
    yield family_of(
        "cadvisor_version_info",
        "gauge",
        "A metric with a constant '1' value labeled by kernel version, OS version, docker version, cadvisor version "
        "& cadvisor revision.",
        [(versions, 1.0)],
    )
    ids = (("boot_id", "bootID"), ("machine_id", "machineID"), ("system_uuid", "systemUUID"))
    machine = [(label, info.get(field, "")) for label, field in ids]
    for name, text, resource in _MACHINE:
        yield family_of(name, "gauge", text, [(machine, amount_of(capacity.get(resource)) or 0.0)])


def kubelet_metrics(measurement: Measurement) -> Iterator[Collected]:
    """Yield the metrics of `/metrics`."""
    status = measurement.node.get("status") or {}
    version = (status.get("nodeInfo") or {}).get("kubeletVersion", "")
    major, _, rest = version.removeprefix("v").partition(".")
    pods = float(len(measurement.pods))
    sources = [([("static", "")], pods), ([("static", "true")], 0.0)]
    running = [pod for pod in measurement.pods if (pod.get("status") or {}).get("phase") == "Running"]
    samples: Mapping[str, Sequence[tuple[Labels, float]]] = {
        "kubelet_active_pods": sources,
        "kubelet_desired_pods": sources,
        "kubelet_node_name": [([("node", meta.name(measurement.node))], 1.0)],
        "kubelet_running_containers": [
            ([("container_state", state)], float(count))
            for state, count in _container_states(measurement).items()
        ],
        "kubelet_running_pods": [((), float(len(running)))],
        "kubernetes_build_info": [
            ([("git_version", version), ("major", major), ("minor", rest.partition(".")[0])], 1.0)
        ],
    }
    for name, values in samples.items():
        yield family_of(name, "gauge", f"[ALPHA] {_KUBELET[name]}", values)


def _container_states(measurement: Measurement) -> dict[str, int]:
    states = {"created": 0, "exited": 0, "running": 0}
    for pod in measurement.pods:
        for container in every_container(pod.get("spec") or {}):
            state = (container_status(pod, container["name"]) or {}).get("state") or {}
            states["running"] += "running" in state
            states["exited"] += "terminated" in state
    return states


_KUBELET: Final = {
    "kubelet_active_pods": "The number of pods the kubelet considers active and which are being considered when admitting "
    "new pods. static is true if the pod is not from the apiserver.",
    "kubelet_desired_pods": "The number of pods the kubelet is being instructed to run. static is true if the pod is not "
    "from the apiserver.",
    "kubelet_node_name": "The node's name. The count is always 1.",
    "kubelet_running_containers": "Number of containers currently running",
    "kubelet_running_pods": "Number of pods that have a running pod sandbox",
    "kubernetes_build_info": "A metric with a constant '1' value labeled by major, minor, git version, git commit, git "
    "tree state, build date, Go version, and compiler from which Kubernetes was built, and platform on which it is "
    "running.",
}
KUBELET_METRICS: Final[Mapping[str, Callable[[Measurement], Iterator[Collected]]]] = {
    "/metrics": kubelet_metrics,
    "/metrics/cadvisor": cadvisor_metrics,
    "/metrics/resource": resource_metrics,
}
"""The functions that yield a kubelet's own metrics, by path."""


def _pod_labels(pod: ReadOnlyTree) -> list[tuple[str, Any]]:
    return [("namespace", meta.namespace(pod)), ("pod", meta.name(pod))]


def _group_labels(id_: str, pod: ReadOnlyTree | None = None, container: ReadOnlyTree | None = None) -> Labels:
    """Return cAdvisor's labels of a control group; a label that does not apply is empty."""
    name = container["name"] if container is not None else ""
    status = (container_status(pod, name) or {}) if pod is not None and name else {}
    return [
        ("container", name),
        ("id", id_),
        ("image", container["image"] if container is not None else ""),
        ("name", (status.get("containerID") or "").partition("://")[2]),
        ("namespace", meta.namespace(pod) if pod is not None else ""),
        ("pod", meta.name(pod) if pod is not None else ""),
    ]


def _pod_group(pod: ReadOnlyTree) -> str:
    qos_class = (pod.get("status") or {}).get("qosClass") or "BestEffort"
    parent = "/kubepods" if qos_class == "Guaranteed" else f"/kubepods/{qos_class.lower()}"
    return f"{parent}/pod{meta.uid(pod)}"


def _container_group(pod: ReadOnlyTree, container: ReadOnlyTree) -> str:
    status = container_status(pod, container["name"]) or {}
    container_id = (status.get("containerID") or "").partition("://")[2]
    return f"{_pod_group(pod)}/{container_id or container['name']}"


def amount_of(text: Any) -> float | None:
    try:
        return float(quantity.from_json(text).number) if text is not None else None
    except quantity.QuantityError:
        return None


def limit_of(container: ReadOnlyTree, resource: str, field: str = "limits") -> float | None:
    return amount_of(((container.get("resources") or {}).get(field) or {}).get(resource))


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


_MEMORY: Final = (
    ("container_memory_rss", "Size of RSS in bytes."),
    (
        "container_memory_usage_bytes",
        "Current memory usage in bytes, including all memory regardless of when it was accessed",
    ),
    ("container_memory_working_set_bytes", "Current working set in bytes."),
)
_LIMITS: Final = (
    ("container_spec_cpu_period", "CPU period of the container.", _cpu_period),
    ("container_spec_cpu_quota", "CPU quota of the container.", _cpu_quota),
    ("container_spec_cpu_shares", "CPU share of the container.", _cpu_shares),
    ("container_spec_memory_limit_bytes", "Memory limit for the container.", _memory_limit),
)
_MACHINE: Final = (
    ("machine_cpu_cores", "Number of logical CPU cores.", "cpu"),
    ("machine_memory_bytes", "Amount of memory installed on the machine.", "memory"),
)
