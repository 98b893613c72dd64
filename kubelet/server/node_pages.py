"""The pages of a simulated node: `/metrics` and its subpaths, `/stats/summary`, `/configz`."""

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import orjson
from aiohttp import web

from mockube.apimachinery import meta, quantity
from mockube.apimachinery.mirror_pods import kubelet_uid
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.usage.usage import running_containers
from mockube.component_base.clock import Clock
from mockube.component_base.exposition import metrics_text
from mockube.component_base.loop import yield_to_loop
from mockube.component_base.metrics import Collected
from mockube.kubelet.kwok_objects import KwokObjects
from mockube.kubelet.node_machine.kubelet_start import configuration as settings_of_file
from mockube.kubelet.node_objects import kubelet_minor
from mockube.kubelet.pod_lifecycle.container_context import ContainerContext
from mockube.kubelet.probes.totals import ProbeRecords

from .kubelet_metrics import (
    BYTES_OF_INODE,
    INTERFACE,
    USAGE_METRICS,
    kubelet_metrics,
    limit_of,
    volume_capacities,
)
from .metric_objects import metric_family
from .node_counters import KubeletCounters
from .node_health import METRICS_HEADERS
from .node_usage import Measurement, NodeUsage, started_at
from .probe_metrics import probe_metrics

_CONFIGURATION: Final = Path(__file__).parent / "data" / "kubelet_configuration.json"
"""The default configuration of a kubelet of 1.37."""
_NEWEST: Final = 37
_SINCE: Final[Mapping[str, int]] = {
    "containerLogMaxWorkers": 30, "containerLogMonitorInterval": 30, "podLogsDir": 30, "failCgroupV1": 31, "crashLoopBackOff": 32,
    "imagePullCredentialsVerificationPolicy": 33, "mergeDefaultEvictionSettings": 33, "memoryReservationPolicy": 36,
}  # fmt: skip
"""The minors since which a kubelet has a setting."""
NANO: Final = 1_000_000_000
_MAX_PIDS: Final = 4_194_304
"""The number of processes that a node may have."""


class NodePages:
    def __init__(
        self,
        usage: NodeUsage,
        kwok: KwokObjects,
        clock: Clock,
        probe_records: ProbeRecords,
        container_context: ContainerContext,
        counters: KubeletCounters,
    ) -> None:
        self._usage = usage
        self._kwok = kwok
        self._clock = clock
        self._probe_records = probe_records
        self._container_context = container_context
        self._counters = counters

    async def respond(
        self, path: str, query: Mapping[str, str], node: ReadOnlyTree, settings: bytes | None = None
    ) -> web.Response | None:
        """Return the response for a path; None if the path is unknown. `settings` is the file with those of the kubelet."""
        if path == "/configz":
            return _json({"kubeletconfig": configuration(node, settings_of_file(settings))})
        if path == "/stats/summary":
            measurement = await self._usage.measure(node)
            return _json(summary(measurement, with_file_systems=query.get("only_cpu_and_memory") != "true"))
        text = await self._metrics(path, node)
        return None if text is None else web.Response(body=text, headers=METRICS_HEADERS)

    async def _metrics(self, path: str, node: ReadOnlyTree) -> bytes | None:
        """Return the text of the Metric object of a path, or else of the kubelet's own metrics; None without either."""
        metrics = await self._metrics_of_object(path, meta.name(node))
        families: Iterable[Collected | None]
        if metrics is not None:
            measurement = await self._usage.measure(node)
            families = (metric_family(metric, self._usage, measurement) for metric in metrics)
        elif path == "/metrics":
            counted = self._counters.of(meta.name(node)).metrics.collect()
            families = (*kubelet_metrics(self._usage.scraped_node(node)), *counted)
        elif path == "/metrics/probes":
            families = probe_metrics(
                self._usage.scraped_node(node).pods,
                self._clock.now(),
                self._probe_records,
                self._container_context,
            )
        elif path in USAGE_METRICS:
            families = USAGE_METRICS[path](await self._usage.measure(node))
        else:
            return None
        texts: dict[str, bytes] = {}
        for family in families:
            if family is not None:
                texts[family.family.name] = texts.get(family.family.name, b"") + metrics_text([family])
            await yield_to_loop()
        return b"".join(texts[name] for name in sorted(texts))

    async def _metrics_of_object(self, path: str, node: str) -> list[ReadOnlyTree] | None:
        for metric_object in await self._kwok.list("metrics"):
            spec = metric_object.get("spec") or {}
            if (spec.get("path") or "").replace("{nodeName}", node) == path:
                return list(spec.get("metrics") or ())
        return None


def configuration(node: ReadOnlyTree, file_settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the KubeletConfiguration of a node: the defaults of its minor, what its file sets, and `maxPods` from its status."""
    defaults: dict[str, Any] = orjson.loads(_CONFIGURATION.read_bytes())
    minor = kubelet_minor(node) or _NEWEST
    settings = _merged({k: v for k, v in defaults.items() if _SINCE.get(k, 0) <= minor}, file_settings or {})
    pods = ((node.get("status") or {}).get("capacity") or {}).get("pods")
    return {**settings, "maxPods": _to_int(pods)} if pods is not None else settings


def _merged(defaults: Mapping[str, Any], file_settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings in the place of defaults. A duration of zero stands for its default."""
    merged = dict(defaults)
    for name, value in file_settings.items():
        default = defaults.get(name)
        if isinstance(value, Mapping) and isinstance(default, Mapping):
            merged[name] = _merged(default, value)
        elif value is not None and value not in ("0s", ""):
            merged[name] = value
    return merged


def summary(measurement: Measurement, *, with_file_systems: bool = True) -> dict[str, Any]:
    """Return a Summary of stats.kubelet.k8s.io/v1alpha1: CPU and memory, and the capacity of the node's disk."""
    node, at = measurement.node, measurement.at
    status = node.get("status") or {}
    capacity = status.get("capacity") or {}
    stats: dict[str, Any] = {
        "nodeName": meta.name(node),
        "startTime": meta.metadata(node).get("creationTimestamp"),
        "cpu": _cpu(measurement, node, at),
        "memory": _memory(measurement, node, at, limit=_to_int(capacity.get("memory"))),
    }
    size = _to_int(capacity.get("ephemeral-storage"))
    disk = {**_disk(size, at), **_inodes(size)}
    if with_file_systems:
        stats |= {"fs": disk, "runtime": {"imageFs": disk, "containerFs": disk}, "network": _network(at)}
    pods = [_pod_stats(measurement, pod, at) for pod in measurement.pods]
    if with_file_systems:
        processes = sum(len(pod["containers"]) for pod in pods)
        stats["rlimit"] = {"time": format_time(at), "maxpid": _MAX_PIDS, "curproc": processes}
        volumes = _volumes_by_pod(measurement, at)
        for pod in pods:
            volumes_of_pod = volumes.get(pod["podRef"]["uid"], [])
            pod |= {
                "network": _network(at), "volume": volumes_of_pod, "ephemeral-storage": disk,
                "process_stats": {"process_count": len(pod["containers"])},
            }  # fmt: skip
            pod["containers"] = [
                {**container, "rootfs": disk, "logs": disk} for container in pod["containers"]
            ]
    return {"node": stats, "pods": pods}


def _network(at: datetime) -> dict[str, Any]:
    """Return the traffic of an interface: there is none, because no network is simulated."""
    interface = {"name": INTERFACE, "rxBytes": 0, "rxErrors": 0, "txBytes": 0, "txErrors": 0}
    return {"time": format_time(at), **interface, "interfaces": [interface]}


def _volumes_by_pod(measurement: Measurement, at: datetime) -> dict[str, list[dict[str, Any]]]:
    """Return the volumes of claims by the uid of their pod."""
    volumes: dict[str, list[dict[str, Any]]] = {}
    for pod, volume, claim, size in volume_capacities(measurement):
        reference = {"name": claim, "namespace": meta.namespace(pod)}
        stats = {**_disk(int(size), at), **_inodes(int(size))}
        volumes.setdefault(meta.uid(pod), []).append({**stats, "name": volume, "pvcRef": reference})
    return volumes


def _pod_stats(measurement: Measurement, pod: ReadOnlyTree, at: datetime) -> dict[str, Any]:
    started = (pod.get("status") or {}).get("startTime")
    return {
        "podRef": {"name": meta.name(pod), "namespace": meta.namespace(pod), "uid": kubelet_uid(pod)},
        "startTime": started,
        "containers": list(_containers(measurement, pod, at)),
        "cpu": _cpu(measurement, pod, at),
        "memory": _memory(measurement, pod, at),
    }


def _containers(measurement: Measurement, pod: ReadOnlyTree, at: datetime) -> Iterator[dict[str, Any]]:
    for container in running_containers(pod):
        name = container["name"]
        started = started_at(pod, name)
        limit = limit_of(container, "memory")
        yield {
            "name": name,
            "startTime": None if started is None else format_time(started),
            "cpu": _cpu(measurement, pod, at, name),
            "memory": _memory(measurement, pod, at, name, limit=None if limit is None else math.floor(limit)),
        }


def _cpu(measurement: Measurement, obj: ReadOnlyTree, at: datetime, container: str = "") -> dict[str, Any]:
    return {
        "time": format_time(at),
        "usageNanoCores": round(measurement.usage_of(obj, "cpu", container) * NANO),
        "usageCoreNanoSeconds": round(measurement.cumulative_usage(obj, "cpu", container) * NANO),
    }


def _memory(
    measurement: Measurement,
    obj: ReadOnlyTree,
    at: datetime,
    container: str = "",
    *,
    limit: int | None = None,
) -> dict[str, Any]:
    used = round(measurement.usage_of(obj, "memory", container))
    available = {} if limit is None else {"availableBytes": max(limit - used, 0)}
    return {
        "time": format_time(at),
        **available,
        "usageBytes": used,
        "workingSetBytes": used,
        "rssBytes": used,
        "pageFaults": 0,
        "majorPageFaults": 0,
    }


def _disk(capacity: int, at: datetime) -> dict[str, Any]:
    return {"time": format_time(at), "availableBytes": capacity, "capacityBytes": capacity, "usedBytes": 0}


def _inodes(size: int) -> dict[str, int]:
    inodes = size // BYTES_OF_INODE
    return {"inodes": inodes, "inodesFree": inodes, "inodesUsed": 0}


def _to_int(amount: Any) -> int:
    return math.floor(quantity.number_or(amount, 0))


def _json(tree: Mapping[str, Any]) -> web.Response:
    return web.Response(body=orjson.dumps(tree), content_type="application/json")
