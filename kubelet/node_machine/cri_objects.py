"""The containers, pods and images of a node as CRI describes them. Pure."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.mirror_pods import kubelet_uid
from mockube.apimachinery.pods import every_container
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.container_runtime.image_service import StoredImage
from mockube.container_runtime.runs import container_spec
from mockube.container_runtime.volume_paths import mount_source

_NANO: Final = 1_000_000_000
_STATUSES: Final = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
RUNNING: Final = "CONTAINER_RUNNING"
EXITED: Final = "CONTAINER_EXITED"


def sandbox_id(pod: ReadOnlyTree) -> str:
    return hashlib.sha256(f"sandbox/{meta.uid(pod)}".encode()).hexdigest()


def _nanoseconds(text: str | None) -> int:
    return round(parse_time(text).timestamp()) * _NANO if text else 0


def _labels(pod: ReadOnlyTree) -> dict[str, str]:
    return {
        "io.kubernetes.pod.name": meta.name(pod),
        "io.kubernetes.pod.namespace": meta.namespace(pod),
        "io.kubernetes.pod.uid": kubelet_uid(pod),
    }


def sandboxes(pods: Sequence[ReadOnlyTree]) -> list[dict[str, Any]]:
    """Return the sandboxes of pods that a kubelet has started."""
    return [
        {
            "id": sandbox_id(pod),
            "metadata": {
                "name": meta.name(pod),
                "uid": kubelet_uid(pod),
                "namespace": meta.namespace(pod),
                "attempt": 0,
            },
            "state": "SANDBOX_NOTREADY" if _is_over(pod) else "SANDBOX_READY",
            "createdAt": str(_nanoseconds((pod["status"]).get("startTime"))),
            "labels": {**meta.labels(pod), **_labels(pod)},
            "annotations": dict(meta.annotations(pod)),
            "runtimeHandler": "",
        }
        for pod in pods
        if (pod.get("status") or {}).get("startTime")
    ]


def _is_over(pod: ReadOnlyTree) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def containers(pods: Sequence[ReadOnlyTree]) -> list[dict[str, Any]]:
    """Return the containers of pods: the present run of each, and the one before."""
    return [each for pod in pods for each in _containers_of(pod)]


def _containers_of(pod: ReadOnlyTree) -> Iterator[dict[str, Any]]:
    status = pod.get("status") or {}
    for field in _STATUSES:
        for entry in status.get(field) or ():
            spec = container_spec(pod, entry["name"])
            if spec is None:
                continue
            restarts = entry.get("restartCount") or 0
            state, last = entry.get("state") or {}, entry.get("lastState") or {}
            present = state.get("running") or state.get("terminated")
            if present:
                identifier = entry.get("containerID") or present.get("containerID") or ""
                yield _container(pod, spec, entry, restarts, identifier, state)
            if "terminated" in last:
                attempt = max(restarts - 1, 0) if present else restarts
                yield _container(pod, spec, entry, attempt, last["terminated"].get("containerID") or "", last)


def _container(
    pod: ReadOnlyTree,
    spec: ReadOnlyTree,
    status: ReadOnlyTree,
    attempt: int,
    identifier: str,
    state: ReadOnlyTree,
) -> dict[str, Any]:
    run = state.get("running") or state.get("terminated") or {}
    image = status.get("imageID") or status.get("image") or spec.get("image") or ""
    digest = image.rpartition("@")[2]
    fallback = hashlib.sha256(f"{meta.uid(pod)}/{spec['name']}/{attempt}".encode()).hexdigest()
    return {
        "id": identifier.rpartition("/")[2] or fallback,
        "podSandboxId": sandbox_id(pod),
        "metadata": {"name": spec["name"], "attempt": attempt},
        "image": {
            "image": digest,
            "annotations": {},
            "userSpecifiedImage": spec.get("image") or "",
            "runtimeHandler": "",
        },
        "imageRef": image,
        "state": RUNNING if "running" in state else EXITED,
        "createdAt": str(_nanoseconds(run.get("startedAt"))),
        "labels": {"io.kubernetes.container.name": spec["name"], **_labels(pod)},
        "annotations": {"io.kubernetes.container.restartCount": str(attempt)},
    }


def status_of_container(
    item: Mapping[str, Any], pod: ReadOnlyTree, log_path: str, bound: Mapping[str, ReadOnlyTree]
) -> dict[str, Any]:
    """Return what `crictl inspect` prints of a container; `bound` has the pod's PersistentVolumes by the names of its volumes."""
    spec = container_spec(pod, item["metadata"]["name"]) or {}
    run = _run_of(item, pod)
    terminated = run if "exitCode" in run else {}
    return {
        "status": {
            **{
                name: item[name]
                for name in ("id", "metadata", "image", "imageRef", "labels", "annotations", "state")
            },
            "createdAt": run.get("startedAt") or "",
            "startedAt": run.get("startedAt") or "",
            "finishedAt": terminated.get("finishedAt") or "0001-01-01T00:00:00Z",
            "exitCode": terminated.get("exitCode") or 0,
            "reason": terminated.get("reason") or "",
            "message": terminated.get("message") or "",
            "logPath": log_path,
            "mounts": [
                {
                    "containerPath": mount["mountPath"],
                    "hostPath": mount_source(pod, kubelet_uid(pod), spec, number, bound),
                    "readonly": bool(mount.get("readOnly")),
                }
                for number, mount in enumerate(spec.get("volumeMounts") or ())
            ],
            "resources": {"linux": _resources(spec)},
        },
        "info": {
            "sandboxID": item["podSandboxId"],
            "runtimeType": "io.containerd.runc.v2",
            "config": {
                "metadata": item["metadata"],
                "image": item["image"],
                "command": list(spec.get("command") or ()),
                "args": list(spec.get("args") or ()),
                "envs": [
                    {"key": each["name"], "value": each.get("value") or ""} for each in spec.get("env") or ()
                ],
                "labels": item["labels"],
            },
        },
    }


def _resources(spec: ReadOnlyTree) -> dict[str, Any]:
    resources = spec.get("resources") or {}
    return {name: dict(resources[name]) for name in ("requests", "limits") if resources.get(name)}


def _run_of(item: Mapping[str, Any], pod: ReadOnlyTree) -> Mapping[str, Any]:
    for field in _STATUSES:
        for entry in (pod.get("status") or {}).get(field) or ():
            if entry["name"] == item["metadata"]["name"]:
                state, last = entry.get("state") or {}, entry.get("lastState") or {}
                for each in (state.get("running"), state.get("terminated"), last.get("terminated")):
                    if each and str(_nanoseconds(each.get("startedAt"))) == item["createdAt"]:
                        return dict(each)
    return {}


def status_of_sandbox(item: Mapping[str, Any], pod: ReadOnlyTree) -> dict[str, Any]:
    """Return what `crictl inspectp` prints of a pod."""
    status = pod.get("status") or {}
    addresses = [each["ip"] for each in status.get("podIPs") or ()]
    mode = "NODE" if pod["spec"].get("hostNetwork") else "POD"
    return {
        "status": {
            **{
                name: item[name]
                for name in ("id", "metadata", "state", "labels", "annotations", "runtimeHandler")
            },
            "createdAt": status.get("startTime") or "",
            "network": {
                "ip": next(iter(addresses), ""),
                "additionalIps": [{"ip": each} for each in addresses[1:]],
            },
            "linux": {"namespaces": {"options": {"network": mode, "pid": "CONTAINER", "ipc": "POD"}}},
        },
        "info": {"containers": [container["name"] for container in every_container(pod["spec"])]},
    }


def images(stored: Sequence[StoredImage], used: Sequence[str]) -> list[dict[str, Any]]:
    """Return the images of a node; `used` are the references of its pods."""
    found = []
    for image in stored:
        digests = [name for name in image.names if "@" in name]
        tags = [name for name in image.names if "@" not in name]
        identifier = (
            next(iter(digests), "").rpartition("@")[2]
            or hashlib.sha256(str(image.names).encode()).hexdigest()
        )
        found.append(
            {
                "id": identifier, "repoTags": tags, "repoDigests": digests, "size": str(image.size), "uid": None, "username": "", "pinned": False,
                "inUse": any(name in used for name in image.names),
            }
        )  # fmt: skip
    return sorted(found, key=lambda image: (image["repoTags"], image["id"]))


def stats(
    item: Mapping[str, Any], *, cores: float, memory: float, disk: float, at: datetime
) -> dict[str, Any]:
    timestamp = str(round(at.timestamp() * _NANO))

    def value(amount: float) -> dict[str, str]:
        return {"value": str(round(amount))}

    return {
        "attributes": {
            name: item[name] for name in ("id", "metadata", "labels", "annotations", "podSandboxId")
        },
        "cpu": {"timestamp": timestamp, "usageNanoCores": value(cores * _NANO)},
        "memory": {"timestamp": timestamp, "workingSetBytes": value(memory), "usageBytes": value(memory)},
        "writableLayer": {"timestamp": timestamp, "usedBytes": value(disk), "inodesUsed": value(0)},
    }
