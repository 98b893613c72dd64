"""The pod and the container that `logs`, `exec` and `port_forward` are about, chosen as by kubectl."""

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlencode

from msgspec import Struct

from mockube.apimachinery import conditions, labels, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.kinds import PODS
from mockube.client.kubeconfig import Access
from mockube.client.resources import Key
from mockube.client.verbs import Client, Parsed
from mockube.component_base.suggestions import did_you_mean

from .client import ObjectClient
from .errors import InvalidValue
from .exec import ExecOptions, ExecResult, run_command
from .port_forward import PortForward
from .targets import ObjectName

DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
LOG_SECONDS: Final = 65.0
_CONTAINER_FIELDS: Final = ("containers", "initContainers", "ephemeralContainers")


class LogOptions(Struct, frozen=True, kw_only=True):
    container: str = ""
    previous: bool = False
    """Whether the log is of the container before its last restart."""
    timestamps: bool = False
    tail: int | None = None
    """The number of last lines; None for all."""

    def query(self, container: str) -> list[tuple[str, object]]:
        query: list[tuple[str, object]] = [("container", container)]
        query += [(name, "true") for name in ("previous", "timestamps") if getattr(self, name)]
        return query if self.tail is None else [*query, ("tailLines", self.tail)]


class PodClient:
    """Requests about the containers of pods."""

    def __init__(self, client: Client, objects: ObjectClient, access: Access) -> None:
        self._client = client
        self._objects = objects
        self._access = access

    async def logs(self, target: ObjectName, options: LogOptions) -> str:
        _, pod = await find_pod(self._objects, target)
        container = choose_container(pod, options.container)
        async with self._client.download(
            pod_path(pod, "log", options.query(container)), timeout_seconds=LOG_SECONDS
        ) as stream:
            return (await stream.read()).decode(errors="replace")

    async def exec(self, target: ObjectName, options: ExecOptions) -> ExecResult:
        _, pod = await find_pod(self._objects, target)
        container = choose_container(pod, options.container)
        return await run_command(self._access, pod_path(pod, "exec", options.query(container)), options)

    async def port_forward(self, target: ObjectName, port: int | str, local_port: int) -> PortForward:
        """Return an open port-forward to a port of a pod."""
        tree, pod = await find_pod(self._objects, target)
        path = pod_path(pod, "portforward", [("ports", target_port(tree, pod, port))])
        forward = PortForward(self._access, path)
        await forward.open(local_port)
        return forward


async def find_pod(objects: ObjectClient, target: ObjectName) -> tuple[Parsed, Parsed]:
    """Return the object that a user named and its pod: itself, or the first of its pods, a ready one if there is one."""
    (tree,) = await objects.get([target])
    if meta.kind(tree) == "Pod":
        return tree, tree
    pods = await objects.list("pods", meta.namespace(tree), {"label_selector": pod_selector(tree)})
    if not pods:
        raise InvalidValue(f"the {meta.kind(tree)} {meta.name(tree)} has no pods")
    return tree, min(pods, key=lambda pod: not conditions.is_true(pod, "Ready"))


def choose_container(pod: ReadOnlyTree, name: str) -> str:
    """Return the name of a container: the default one if the user named none."""
    names = [container["name"] for field in _CONTAINER_FIELDS for container in pod["spec"].get(field) or ()]
    if not name:
        return str((meta.metadata(pod).get("annotations") or {}).get(DEFAULT_CONTAINER) or names[0])
    if name not in names:
        hint = did_you_mean(name, names) or f": it has {', '.join(names)}"
        raise InvalidValue(f"pod {meta.name(pod)} has no container {name}{hint}")
    return name


def pod_path(pod: ReadOnlyTree, subresource: str, query: Sequence[tuple[str, object]]) -> str:
    """Return the path of a subresource of a pod, with a query."""
    key = Key.of(pod)
    return f"{PODS.path(key.namespace, key.name, subresource)}?{urlencode(query)}"


def target_port(tree: ReadOnlyTree, pod: ReadOnlyTree, port: int | str) -> int:
    """Return the number of a pod's port: that of a named port, or the target of a Service's port."""
    if meta.kind(tree) == "Service":
        port = _service_target(tree, port)
    if isinstance(port, int):
        return port
    ports = [port for container in pod["spec"]["containers"] for port in container.get("ports") or ()]
    named = {entry["name"]: int(entry["containerPort"]) for entry in ports if entry.get("name")}
    if port not in named:
        hint = did_you_mean(port, named) or f": it has {', '.join(named) or 'none'}"
        raise InvalidValue(f"pod {meta.name(pod)} has no port with the name {port}{hint}")
    return named[port]


def _service_target(service: ReadOnlyTree, port: int | str) -> int | str:
    entries: Sequence[Any] = service["spec"].get("ports") or ()
    for entry in entries:
        if port in {entry["port"], entry.get("name")}:
            target: int | str = entry.get("targetPort", entry["port"])
            return target
    served = ", ".join(str(entry["port"]) for entry in entries)
    raise InvalidValue(f"Service {meta.name(service)} has no port {port}: it has {served or 'none'}")


def pod_selector(tree: ReadOnlyTree) -> str:
    """Return the label selector of the pods of an object."""
    selector = (tree.get("spec") or {}).get("selector")
    if not selector or not isinstance(selector, dict):
        raise InvalidValue(f"a {meta.kind(tree)} has no pods: name a pod, a workload or a Service")
    is_label_selector = selector.keys() <= {"matchLabels", "matchExpressions"}
    return str(labels.from_label_selector(selector) if is_label_selector else labels.from_set(selector))
