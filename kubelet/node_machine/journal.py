"""The journal of a node: what its kubelet and its container runtime have done, by the Events and the pods of the API. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.node_journal import ERROR_PRIORITY, JournalEntry
from mockube.container_runtime.node_processes import CONTAINERD_PID, KUBELET_PID

_PROBE: Final = re.compile(r"(Liveness|Readiness|Startup) probe (failed|errored)[^:]*: (.*)", re.DOTALL)
_BACK_OFF: Final = re.compile(r"Back-off restarting failed container (\S+) in pod (\S+)")
_PULL: Final = re.compile(r"(?:Pulling|Successfully pulled|Failed to pull) image \"([^\"]+)\"(.*)", re.DOTALL)
_CONTAINER: Final = re.compile(r"spec\.\w+\{(.+)\}")
_MIRROR: Final = "kubernetes.io/config.mirror"
SYNC_FAILED: Final = "pod_workers.go:1324"
RESTART_SECONDS: Final = 10.0
"""The pause of systemd before it starts the kubelet again."""
RETRY_SECONDS: Final = 7.0
"""The pause of a kubelet that does not reach the API server."""
_SHOWN_RESTARTS: Final = 10


def kubelet_line(at: datetime, place: str, text: str, *, is_error: bool = False) -> JournalEntry:
    """Return a line of a kubelet in the format of klog."""
    head = f"{'E' if is_error else 'I'}{at:%m%d %H:%M:%S.%f} {KUBELET_PID:7} {place}]"
    priority = {"priority": ERROR_PRIORITY} if is_error else {}
    return JournalEntry(
        at=at,
        unit="kubelet.service",
        identifier="kubelet",
        pid=KUBELET_PID,
        text=f"{head} {text}",
        **priority,
    )


def runtime_line(at: datetime, level: str, text: str) -> JournalEntry:
    """Return a line of containerd."""
    line = f'time="{at:%Y-%m-%dT%H:%M:%S.%f}000Z" level={level} msg={quote(text)}'
    return JournalEntry(
        at=at, unit="containerd.service", identifier="containerd", pid=CONTAINERD_PID, text=line
    )


def systemd_line(at: datetime, unit: str, text: str, *, is_error: bool = False) -> JournalEntry:
    priority = {"priority": ERROR_PRIORITY} if is_error else {}
    return JournalEntry(at=at, unit=f"{unit}.service", identifier="systemd", pid=1, text=text, **priority)


def start_entries(node: ReadOnlyTree, at: datetime) -> list[JournalEntry]:
    """Return what a kubelet logs when it starts."""
    name = meta.name(node)
    version = ((node.get("status") or {}).get("nodeInfo") or {}).get("kubeletVersion") or ""
    return [
        systemd_line(at, "kubelet", "Started kubelet.service - kubelet: The Kubernetes Node Agent."),
        kubelet_line(at, "server.go:540", f'"Kubelet version" kubeletVersion={quote(version)}'),
        kubelet_line(at, "kubelet.go:410", '"Adding static pod path" path="/etc/kubernetes/manifests"'),
        kubelet_line(at, "server.go:180", '"Starting to listen" address="0.0.0.0" port=10250'),
        kubelet_line(at, "kubelet_node_status.go:78", f'"Successfully registered node" node={quote(name)}'),
    ]


def node_start_entries(node: ReadOnlyTree) -> list[JournalEntry]:
    """Return what the journal has of the boot of a node."""
    at = meta.creation_timestamp(node)
    if at is None:
        return []
    started = [
        systemd_line(at, "containerd", "Started containerd.service - containerd container runtime."),
        runtime_line(at, "info", "containerd successfully booted in 0.050000s"),
    ]
    return [*started, *start_entries(node, at)]


def event_entries(
    events: Iterable[ReadOnlyTree], node: str, pods: Mapping[str, ReadOnlyTree]
) -> list[JournalEntry]:
    """Return the lines for the Events that the kubelet of a node has written; `pods` are those of the node by uid."""
    return [
        entry
        for event in events
        if (event.get("source") or {}).get("host") == node
        for entry in _entries_of(event, pods)
    ]


def _entries_of(event: ReadOnlyTree, pods: Mapping[str, ReadOnlyTree]) -> Iterator[JournalEntry]:
    timestamps = [event.get(name) for name in ("firstTimestamp", "lastTimestamp", "eventTime")]
    times = [str(text) for text in timestamps if text]
    for text in dict.fromkeys(times):
        yield from _lines(event, parse_time(text), pods)


def _lines(event: ReadOnlyTree, at: datetime, pods: Mapping[str, ReadOnlyTree]) -> Iterator[JournalEntry]:
    about, message, reason = (
        event.get("involvedObject") or {},
        event.get("message") or "",
        event.get("reason") or "",
    )
    if not about.get("namespace"):
        yield kubelet_line(at, "event.go:389", _occurred(event))
        return
    pod = quote(f"{about.get('namespace')}/{about.get('name')}")
    uid = quote(about.get("uid") or "")
    match = _CONTAINER.fullmatch(about.get("fieldPath") or "")
    container = match[1] if match else ""
    if probe := _PROBE.fullmatch(message):
        result = "failure" if probe[2] == "failed" else "unknown"
        yield kubelet_line(
            at, "prober.go:120",
            f'"Probe failed" probeType="{probe[1]}" pod={pod} podUID={uid} containerName={quote(container)} probeResult="{result}" '
            f"output={quote(probe[3])}",
        )  # fmt: skip
    elif reason == "BackOff":
        words = _BACK_OFF.fullmatch(message)
        kind = "CrashLoopBackOff" if words else "ImagePullBackOff"
        text = _waiting_message(pods.get(about.get("uid") or ""), container) or message
        error = f'failed to "StartContainer" for "{container}" with {kind}: {quote(text)}'
        yield kubelet_line(
            at,
            SYNC_FAILED,
            f'"Error syncing pod, skipping" err={quote(error)} pod={pod} podUID={uid}',
            is_error=True,
        )
    elif reason == "Failed" and (pull := _PULL.match(message)):
        error = pull[2].removeprefix(": ")
        line = f'"PullImage from image service failed" err={quote(error)} image={quote(pull[1])}'
        yield runtime_line(at, "error", f'PullImage "{pull[1]}" failed')
        yield kubelet_line(at, "log.go:32", line, is_error=True)
    elif reason == "Pulling" and (pull := _PULL.match(message)):
        yield runtime_line(at, "info", f'PullImage "{pull[1]}"')
        yield kubelet_line(at, "event.go:389", _occurred(event))
    elif event.get("type") == "Warning":
        error = f"{reason}: {message}"
        yield kubelet_line(
            at,
            SYNC_FAILED,
            f'"Error syncing pod, skipping" err={quote(error)} pod={pod} podUID={uid}',
            is_error=True,
        )
    else:
        if reason == "Started":
            yield runtime_line(
                at,
                "info",
                f'StartContainer for "{container}" of pod {about.get("name")} returns successfully',
            )
        yield kubelet_line(at, "event.go:389", _occurred(event))


def _occurred(event: ReadOnlyTree) -> str:
    about = event.get("involvedObject") or {}
    name = f"{about['namespace']}/{about.get('name')}" if about.get("namespace") else about.get("name") or ""
    return (
        f'"Event occurred" object={quote(name)} fieldPath={quote(about.get("fieldPath") or "")} kind={quote(about.get("kind") or "")} '
        f"apiVersion={quote(about.get('apiVersion') or '')} type={quote(event.get('type') or '')} reason={quote(event.get('reason') or '')} "
        f"message={quote(event.get('message') or '')}"
    )


def _waiting_message(pod: ReadOnlyTree | None, container: str) -> str:
    status = (pod or {}).get("status") or {}
    for field in ("containerStatuses", "initContainerStatuses"):
        for entry in status.get(field) or ():
            if entry["name"] == container:
                return str(((entry.get("state") or {}).get("waiting") or {}).get("message") or "")
    return ""


def pod_entries(pods: Iterable[ReadOnlyTree]) -> Iterator[JournalEntry]:
    """Yield the lines about the pods that the kubelet has now: when it got them, and when they were ready."""
    for pod in pods:
        name = f"{meta.namespace(pod)}/{meta.name(pod)}"
        started = (pod.get("status") or {}).get("startTime")
        if started:
            source = "file" if _MIRROR in meta.annotations(pod) else "api"
            yield kubelet_line(
                parse_time(started),
                "kubelet.go:2537",
                f'"SyncLoop ADD" source="{source}" pods=[{quote(name)}]',
            )
        for condition in (pod.get("status") or {}).get("conditions") or ():
            if condition.get("type") == "Ready" and condition.get("status") == "True" and started:
                at = parse_time(condition["lastTransitionTime"])
                seconds = (at - parse_time(started)).total_seconds()
                line = f'"Observed pod startup duration" pod={quote(name)} podStartSLOduration={seconds:.9g}'
                yield kubelet_line(at, "pod_startup_latency_tracker.go:104", line)


def failure_entries(problem: str, status: str, since: datetime, now: datetime) -> Iterator[JournalEntry]:
    """Yield the latest lines of a kubelet that ends at once, and that systemd starts every 10 seconds."""
    count = max(int((now - since).total_seconds() // RESTART_SECONDS), 0)
    for restart in range(max(count - _SHOWN_RESTARTS, 0), count + 1):
        at = since + timedelta(seconds=restart * RESTART_SECONDS)
        if restart:
            yield systemd_line(
                at, "kubelet", f"kubelet.service: Scheduled restart job, restart counter is at {restart}."
            )
        yield systemd_line(at, "kubelet", "Started kubelet.service - kubelet: The Kubernetes Node Agent.")
        if problem.startswith("kubelet.service:"):
            yield systemd_line(at, "kubelet", problem, is_error=True)
        else:
            yield kubelet_line(at, "run.go:72", problem, is_error=True)
        yield systemd_line(
            at, "kubelet", f"kubelet.service: Main process exited, code=exited, status={status}"
        )
        yield systemd_line(at, "kubelet", "kubelet.service: Failed with result 'exit-code'.", is_error=True)


def cut_off_entries(server: str, node: str, since: datetime, now: datetime) -> Iterator[JournalEntry]:
    """Yield the latest lines of a kubelet that does not reach the API server."""
    address = server.rpartition("//")[2].rstrip("/")
    refused = f"dial tcp {address}: connect: connection refused"
    count = max(int((now - since).total_seconds() // RETRY_SECONDS), 0)
    lease = f"{server}/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node}?timeout=10s"
    for retry in range(max(count - _SHOWN_RESTARTS, 0), count + 1):
        at = since + timedelta(seconds=retry * RETRY_SECONDS)
        error = quote(f'Post "{server}/api/v1/nodes": {refused}')
        line = f'"Unable to register node with API server" err={error} node={quote(node)}'
        yield kubelet_line(at, "kubelet_node_status.go:107", line, is_error=True)
        error = quote(f'Get "{lease}": {refused}')
        line = f'"Failed to ensure lease exists, will retry" err={error} interval="7s"'
        yield kubelet_line(at, "controller.go:145", line, is_error=True)
