"""`/pods`, `/runningpods/` and `/allocatedPods`: the pods of a node; `/run`, and the refusal of `/checkpoint`."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import orjson
from aiohttp import web

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.podview import PodView
from mockube.container_runtime.runs import container_spec
from mockube.container_runtime.runtime import Command, CommandFailed
from mockube.container_runtime.streams import InputStream, TerminalSizes

from .http_errors import HttpError

_SEEN: Final = "kubernetes.io/config.seen"
_SOURCE: Final = "kubernetes.io/config.source"
MAX_OUTPUT: Final = 16 << 20
"""The bytes of output of a command that are sent; what follows is left out."""


def pod_list(path: str, pods: Iterable[PodView]) -> web.Response:
    """Return the PodList of a path."""
    make: Callable[[ReadOnlyTree], Mapping[str, Any] | None] = {
        "pods": _desired,
        "runningpods": _running,
        "allocatedPods": _allocated,
    }[path]
    items = [item for pod in pods if (item := make(pod.object)) is not None]
    body: dict[str, Any] = {"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items or None}
    return web.Response(body=orjson.dumps(body), content_type="application/json")


def _desired(pod: ReadOnlyTree) -> Mapping[str, Any]:
    """Return a pod as a kubelet has it: with when it got it, and from where."""
    metadata = meta.metadata(pod)
    seen = (pod.get("status") or {}).get("startTime") or metadata.get("creationTimestamp") or ""
    annotations = {_SEEN: seen, _SOURCE: "api", **meta.annotations(pod)}
    return {**pod, "metadata": {**metadata, "annotations": annotations}}


def _allocated(pod: ReadOnlyTree) -> Mapping[str, Any]:
    return {**_desired(pod), "status": {}}


def _running(pod: ReadOnlyTree) -> Mapping[str, Any] | None:
    """Return what the container runtime knows of a pod with running containers; None for another one."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    running = {each["name"]: each for each in statuses if "running" in (each.get("state") or {})}
    if not running:
        return None
    containers = [
        {"name": name, "image": each.get("imageID") or each.get("image") or "", "resources": {}}
        for name, each in running.items()
    ]
    metadata = {
        "name": meta.name(pod), "namespace": meta.namespace(pod), "uid": meta.uid(pod), "creationTimestamp": None
    }  # fmt: skip
    return {"metadata": metadata, "spec": {"containers": containers}, "status": {}}


def refuse_checkpoint(pod: PodView, container: str) -> web.Response:
    if container_spec(pod.object, container) is None:
        raise HttpError(404, f"container {container} does not exist")
    name = f"{pod.key.namespace}/{pod.key.name}/{container}"
    problem = "rpc error: code = Unimplemented desc = checkpoints of simulated containers are not simulated"
    raise HttpError(500, f"checkpointing of {name} failed ({problem})")


class _Output:
    """The streams of a command whose output is collected: `Streams`."""

    def __init__(self) -> None:
        self.stdin: InputStream | None = None
        self.sizes = TerminalSizes()
        self.departure = asyncio.Event()
        self.data = bytearray()

    async def write(self, _: int, data: bytes) -> None:
        self.data += data[: max(MAX_OUTPUT - len(self.data), 0)]

    async def finish(self, status: bytes) -> None: ...


async def run_in_container(command: Command) -> web.Response:
    """Run a command; return its output, or an error if it fails."""
    output = _Output()
    try:
        code = await command(output)
    except CommandFailed as error:
        raise HttpError(500, str(error)) from error
    if code:
        text = output.data.decode("utf-8", "replace")
        raise HttpError(500, f"command exited with {code}: {text}" if text else f"command exited with {code}")
    return web.Response(body=bytes(output.data), content_type="application/json")
