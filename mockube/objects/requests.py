"""Requests of the methods of a cluster: their arguments are read at once, and the coroutine that sends them is returned.

Arguments are read in the thread of the caller, because files and kustomizations would block the event loop of the client.
"""

from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias, TypeVar

from mockube.client.kubeconfig import Access
from mockube.client.verbs import Client, ListOptions, Parsed
from mockube.component_base.clock import Clock

from . import arguments, targets
from .client import ObjectClient
from .conditions import read_condition
from .errors import InvalidType, InvalidValue
from .exec import ExecOptions, ExecResult, read_command
from .manifests import read_objects
from .pods import LogOptions, PodClient
from .port_forward import PortForward
from .resource_names import ResourceNames, check_kind
from .trees import Objects

T = TypeVar("T")
Work: TypeAlias = Coroutine[Any, Any, T]
Values: TypeAlias = tuple[Any, Any, Any]
"""A kind, a name and a value; or an object and a value, and None for what the user did not pass."""


class ObjectRequests:
    def __init__(
        self,
        client: Client,
        access: Access,
        *,
        reports: Client | None = None,
        server_clock: Clock | None = None,
        clock: Clock | None = None,
        names: ResourceNames | None = None,
    ) -> None:
        """`clock` is that of the seconds which a method waits at most; the machine's by default."""
        self._objects = ObjectClient(
            client, reports=reports, server_clock=server_clock, clock=clock, names=names
        )
        self._pods = PodClient(client, self._objects, access)

    def apply(self, manifests: Any, namespace: Any) -> Work[Objects]:
        _check_one_namespace(namespace)
        return self._objects.apply(read_objects(manifests), namespace)

    def create(self, manifests: Any, namespace: Any) -> Work[Objects]:
        _check_one_namespace(namespace)
        return self._objects.create(read_objects(manifests), namespace)

    def get(self, kind: Any, name: Any, namespace: Any) -> Work[Any]:
        read = targets.read_targets(kind, name, namespace)
        return _result(lambda: self._objects.get(read.names), is_single=read.is_single)

    def list(self, kind: Any, namespace: Any, labels: Any, fields: Any) -> Work[Objects]:
        check_kind(kind)
        targets.check_namespace(namespace)
        options = ListOptions(
            label_selector=arguments.read_labels(labels), field_selector=arguments.read_labels(fields)
        )
        return self._objects.list(kind, namespace, options)

    def patch(self, values: Values, namespace: Any, patch_type: Any, subresource: str) -> Work[Parsed]:
        kind, name, patch = _split(values, "patch")
        target = targets.read_target(kind, name, namespace)
        return self._objects.patch(target, arguments.read_patch(patch, patch_type), patch_type, subresource)

    def scale(self, values: Values, namespace: Any) -> Work[Parsed]:
        kind, name, replicas = _split(values, "replicas")
        target = targets.read_target(kind, name, namespace)
        return self._objects.scale(target, arguments.read_count(replicas, "replicas"))

    def rollout_restart(self, kind: Any, name: Any, namespace: Any) -> Work[Parsed]:
        return self._objects.rollout_restart(targets.read_target(kind, name, namespace))

    def delete(self, kind: Any, name: Any, namespace: Any, *, ignore_not_found: bool) -> Work[None]:
        names = targets.read_targets(kind, name, namespace).names
        return self._objects.delete(names, ignore_not_found=ignore_not_found)

    def wait(self, values: Values, timeout: Any, namespace: Any) -> Work[Any]:
        kind, name, condition = _split(values, "condition")
        read = targets.read_targets(kind, name, namespace)
        if not read.names:
            raise InvalidValue("there are no objects to wait for: the list is empty")
        wait_condition, seconds = read_condition(condition), arguments.read_timeout(timeout)
        return _result(
            lambda: self._objects.wait(read.names, wait_condition, seconds), is_single=read.is_single
        )

    def wait_gone(self, kind: Any, name: Any, timeout: Any, namespace: Any) -> Work[None]:
        names = targets.read_targets(kind, name, namespace).names
        return self._objects.wait_gone(names, arguments.read_timeout(timeout))

    def logs(self, pod: Any, namespace: Any, options: LogOptions) -> Work[str]:
        if options.tail is not None:
            arguments.read_count(options.tail, "tail")
        return self._pods.logs(targets.read_pod_target(pod, namespace), options)

    def exec(
        self, pod: Any, command: Any, namespace: Any, container: str, stdin: Any, timeout: Any
    ) -> Work[ExecResult]:
        options = ExecOptions(
            command=read_command(command),
            container=container,
            stdin=arguments.read_stdin(stdin),
            seconds=arguments.read_timeout(timeout),
        )
        return self._pods.exec(targets.read_pod_target(pod, namespace), options)

    def changes(self, kind: Any, name: Any, namespace: Any, user: Any) -> Work[Objects]:
        if kind:
            check_kind(kind)
        if name and not kind:
            raise InvalidValue('a name needs a kind: changes("Deployment", "web")')
        targets.check_namespace(namespace)
        return self._objects.changes(kind, name, namespace, user)

    def rewind(self, moment: Any) -> Work[Parsed]:
        if isinstance(moment, bool) or not isinstance(moment, str | int):
            raise InvalidType(f'a moment is a str such as "-5m", or a revision, not {type(moment).__name__}')
        return self._objects.rewind(str(moment))

    def port_forward(self, pod: Any, port: Any, local_port: Any, namespace: Any) -> Work[PortForward]:
        target = targets.read_pod_target(pod, namespace)
        local = arguments.read_count(local_port, "local_port")
        return self._pods.port_forward(target, arguments.read_port(port), local)


async def _result(send: Callable[[], Work[Objects]], *, is_single: bool) -> Any:
    """Return the only object if the user named one object, else the list."""
    found = await send()
    return found[0] if is_single else found


def _split(values: Values, label: str) -> Values:
    """Return the kind, the name and the value; the name is None if the user passed an object."""
    first, second, third = values
    if second is None and third is None:
        raise InvalidType(f"the {label} is missing")
    if third is None and targets.is_kind(first):
        problem = f'"{first}" names no object, and {second!r} is read as the {label}'
        raise InvalidValue(
            f'{problem}: write the kind, the name and the {label}, or "KIND/NAME" and the {label}'
        )
    return (first, None, second) if third is None else values


def _check_one_namespace(namespace: Any) -> None:
    targets.check_namespace(namespace)
    if not namespace:
        raise InvalidValue("the namespace is empty")
