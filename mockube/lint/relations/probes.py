"""The ports and paths of probes and lifecycle handlers, against the ports of their container. Pure."""

import re
from collections.abc import Iterator
from typing import Final

from mockube.lint.findings import Outcome

from .fields import Container, Handler, PortName
from .object_set import ContainerAt, ObjectSet, PodTemplate
from .problem import Problem

_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_PORT_IN_PATH: Final = re.compile(r":\d+(?:/|\Z)|\w+://")
_HTTPS: Final = "https"


def probe_ports(objects: ObjectSet) -> Iterator[Problem]:
    """Find probes and handlers of a port name that their container does not have, which never succeed."""
    for pod, at in _containers(objects):
        for path, port, _ in _ports(at):
            if isinstance(port, str) and not port.isdigit():
                ports = {each.name: each for each in at.fields.ports if each.name}
                if port not in ports:
                    yield Problem(item=pod.item, field=path, message=f"{_no_port(at, port, pod)}")
                elif ports[port].protocol != "TCP":
                    message = f'port "{port}" is one of {ports[port].protocol}, and probes use TCP'
                    yield Problem(item=pod.item, field=path, message=message)


def _no_port(at: ContainerAt, port: str, pod: PodTemplate) -> str:
    container, names = at.fields.name, [each.name for each in at.fields.ports if each.name]
    owner = next(
        (each.fields.name for each in pod.containers if any(p.name == port for p in each.fields.ports)), ""
    )
    if owner:
        return f'container "{container}" has no port named "{port}": it is one of container "{owner}"; name its number'
    has = f"it has {', '.join(names)}" if names else "it has no named ports"
    return f'container "{container}" has no port named "{port}": {has}'


def probe_undeclared_ports(objects: ObjectSet) -> Iterator[Problem]:
    """Find probes of a number that no container of the pod declares, and that no argument or variable mentions.

    A program may listen on a port that it does not declare, as that of the chart of ingress-nginx does for its probes: only a
    number that was meant to be a declared one is certainly wrong.
    """
    for pod, at in _containers(objects):
        declared = {each.container_port for each in pod.ports}
        if not at.fields.ports or pod.may_get_containers:
            continue
        for path, port, host in _ports(at):
            number = int(port) if str(port).isdigit() else 0
            if number and not host and number not in declared and number not in pod.mentioned_numbers:
                numbers = [each.container_port for each in at.fields.ports]
                words = f'container "{at.fields.name}" does not declare port {number}'
                message = f"{words}: it declares {', '.join(map(str, numbers))}"
                outcome = None if any(_is_slip(number, each) for each in numbers) else Outcome.WARNED
                yield Problem(item=pod.item, field=path, message=message, outcome=outcome)


def _is_slip(number: int, declared: int) -> bool:
    """Return whether a number was probably meant to be a declared one: 80 and 8080, or two digits that are swapped."""
    text, other = str(number), str(declared)
    return text in other or other in text or (sorted(text) == sorted(other) and len(text) > 2)


def probe_requests(objects: ObjectSet) -> Iterator[Problem]:
    """Find HTTP probes with a port in their path, or without TLS of a port for HTTPS."""
    for pod, at in _containers(objects):
        for path, handler in _handlers(at):
            http = handler.http_get
            if http is None:
                continue
            if _PORT_IN_PATH.match(http.path):
                message = f'"{http.path}" is not a path: the port has a field of its own'
                yield Problem(item=pod.item, field=f"{path}.httpGet.path", message=message)
            if http.scheme.upper() == "HTTP" and _is_https(at.fields, http.port):
                message = (
                    f"the probe uses HTTP, and port {_quoted(http.port)} is one of HTTPS: set scheme to HTTPS"
                )
                yield Problem(item=pod.item, field=f"{path}.httpGet", message=message)


def _is_https(container: Container, port: PortName) -> bool:
    return port in (_HTTPS, 443) or any(
        each.name == _HTTPS and each.container_port == port for each in container.ports
    )


def _quoted(port: PortName) -> str:
    return f'"{port}"' if isinstance(port, str) else str(port)


def _containers(objects: ObjectSet) -> Iterator[tuple[PodTemplate, ContainerAt]]:
    for pod in objects.all_pods():
        if pod.is_complete:
            for at in pod.containers:
                yield pod, at


def _handlers(at: ContainerAt) -> Iterator[tuple[str, Handler]]:
    container = at.fields
    probes = (container.liveness_probe, container.readiness_probe, container.startup_probe)
    for name, probe in zip(_PROBES, probes, strict=True):
        yield f"{at.path}.{name}", probe
    yield f"{at.path}.lifecycle.postStart", container.lifecycle.post_start
    yield f"{at.path}.lifecycle.preStop", container.lifecycle.pre_stop


def _ports(at: ContainerAt) -> Iterator[tuple[str, PortName, str]]:
    """Yield the field, the port and the host of each handler."""
    for path, handler in _handlers(at):
        if handler.http_get is not None:
            yield f"{path}.httpGet.port", handler.http_get.port, handler.http_get.host
        if handler.tcp_socket is not None:
            yield f"{path}.tcpSocket.port", handler.tcp_socket.port, handler.tcp_socket.host
        if handler.grpc is not None:
            yield f"{path}.grpc.port", handler.grpc.port, ""
