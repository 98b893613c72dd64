"""kwok's objects for a simulated container's logs, exec, attach and port-forward.

The entry is in the Logs, Exec, Attach or PortForward of the pod's name, or else in the first object of the Cluster kind, by
name, that selects the pod. All of them use files, commands and ports of this machine, so they need `--allow-host-access`.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.status import NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_MIRROR_POD, NAMESPACE_SYSTEM
from mockube.client.verbs import Client
from mockube.component_base.clock import Clock
from mockube.container_runtime.control_plane_flags import flag_problem
from mockube.container_runtime.kwok.kinds import KwokKind
from mockube.container_runtime.runtime import NotPermitted

from .installation import CONTROL_PLANE
from .settings import KubeletContext
from .shared_work import SharedWork

GROUP_VERSION: Final = "/apis/kwok.x-k8s.io/v1alpha1"
_LOG_KINDS: Final = (KwokKind.LOGS, KwokKind.ATTACH)
FLAG: Final = "--allow-host-access"
DISCOVERY_SECONDS: Final = 10.0
"""How long the discovery of the served kinds is cached, in seconds."""


class KwokObjects:
    def __init__(
        self, client: Client, clock: Clock, *, allowed: bool, logs: Mapping[str, str] | None = None
    ) -> None:
        """`logs` are the log files of this machine of the static pods that `mockube up` has installed, by the container's name."""
        self._logs = logs or {}
        self._client = client
        self._clock = clock
        self._allowed = allowed
        self._requests = SharedWork[ReadOnlyTree | None]()
        self._served: frozenset[str] = frozenset()
        self._served_until = 0.0

    async def entry(
        self, kind: KwokKind, pod: ReadOnlyTree, container_or_port: str | int
    ) -> ReadOnlyTree | None:
        """Return the entry of a container or a port, or None; raise `NotPermitted` for an entry without the flag."""
        if kind in _LOG_KINDS and (path := self._log_of_program(pod, container_or_port)):
            return {"logsFile": path, "follow": True}
        served = await self._served_kinds()
        for source in await self._objects(kind, pod, served):
            entry = choose_entry((source.get("spec") or {}).get(kind.entries) or (), container_or_port)
            if entry is not None:
                if not self._allowed:
                    name = f"{source.get('kind') or kind.value} {meta.name(source)!r}"
                    raise NotPermitted(
                        f"{name} uses files, commands or ports of the kubelet's machine, which needs {FLAG}",
                    )
                return entry
        return None

    def _log_of_program(self, pod: ReadOnlyTree, container: str | int) -> str:
        """Return the log file of the program for which a static pod of the control plane stands; "" for any other pod."""
        node = str(pod["spec"].get("nodeName") or "")
        is_static = ANNOTATION_MIRROR_POD in meta.annotations(pod) and meta.namespace(pod) == NAMESPACE_SYSTEM
        is_program = is_static and node.startswith(CONTROL_PLANE) and meta.name(pod) == f"{container}-{node}"
        if not is_program or any(map(_has_wrong_flags, pod["spec"]["containers"])):
            return ""  # A program that does not start has only its own words.
        return self._logs.get(str(container), "")

    async def list(self, plural: str) -> Sequence[ReadOnlyTree]:
        """Return all objects of a kind, sorted by name; empty if the kind is not served."""
        if plural not in await self._served_kinds():
            return ()
        return sorted((await self._get(plural) or {}).get("items") or (), key=meta.name)

    async def _objects(
        self, kind: KwokKind, pod: ReadOnlyTree, served: frozenset[str]
    ) -> Sequence[ReadOnlyTree]:
        objects: list[ReadOnlyTree] = []
        if kind.value in served:
            path = f"namespaces/{meta.namespace(pod)}/{kind.value}/{meta.name(pod)}"
            namespaced = await self._get(path)
            objects += [namespaced] if namespaced is not None else []
        if f"cluster{kind.value}" in served:
            cluster_objects = (await self._get(f"cluster{kind.value}") or {}).get("items") or ()
            objects += sorted((obj for obj in cluster_objects if selects(obj, pod)), key=meta.name)
        return objects

    async def _served_kinds(self) -> frozenset[str]:
        now = self._clock.monotonic()
        if now >= self._served_until:
            document = await self._get("") or {}
            self._served = frozenset(resource["name"] for resource in document.get("resources") or ())
            self._served_until = now + DISCOVERY_SECONDS
        return self._served

    async def _get(self, path: str) -> ReadOnlyTree | None:
        return await self._requests.run(path, partial(self._request, path))

    async def _request(self, path: str) -> ReadOnlyTree | None:
        try:
            response: ReadOnlyTree = await self._client.raw("GET", f"{GROUP_VERSION}/{path}".rstrip("/"))
        except NotFound:
            return None
        return response


def _has_wrong_flags(container: ReadOnlyTree) -> bool:
    return flag_problem([*(container.get("command") or ()), *(container.get("args") or ())]) is not None


def selects(cluster_object: ReadOnlyTree, pod: ReadOnlyTree) -> bool:
    """Return whether an object of a Cluster kind selects a pod."""
    selector = (cluster_object.get("spec") or {}).get("selector") or {}
    namespaces, names = selector.get("matchNamespaces"), selector.get("matchNames")
    return (not namespaces or meta.namespace(pod) in namespaces) and (not names or meta.name(pod) in names)


def choose_entry(entries: Sequence[ReadOnlyTree], container_or_port: str | int) -> ReadOnlyTree | None:
    """Return the first entry that names a container or a port, or else the first that names none; or None."""
    field = "ports" if isinstance(container_or_port, int) else "containers"
    named_entry = next((entry for entry in entries if container_or_port in (entry.get(field) or ())), None)
    return named_entry or next((entry for entry in entries if not entry.get(field)), None)


def kwok_objects(context: KubeletContext) -> KwokObjects:
    """Return the manager's reader of kwok's objects; the first call creates it."""
    present: KwokObjects | None = context.shared.get(KwokObjects)
    if present is None:
        allowed = context.settings.allow_host_access
        logs = context.settings.installation.logs
        present = context.shared[KwokObjects] = KwokObjects(
            context.client, context.clock, allowed=allowed, logs=logs
        )
    return present
