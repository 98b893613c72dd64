"""Ports of containers."""

from collections.abc import Iterable, Iterator
from typing import Final

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.validation.pods.surroundings import Surroundings
from apiserver.validation.ports import check_protocol
from apiserver.validation.rules import Tree, every, optional, port_number, required, valid

_CHECK_PORT: Final = every(
    required("containerPort", port_number),
    optional("hostPort", port_number),
    required("protocol", check_protocol),
)


def check_ports(ports: Iterable[Tree] | None, path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, port in enumerate(ports or ()):
        name, at = port.get("name"), path.index(index)
        if name:
            problems = [*valid(names.check_port_name)(name, at.child("name"))]
            if not problems and name in seen:
                problems = [errors.duplicate(at.child("name"), name)]
            seen.add(name)
            yield from problems
        yield from _CHECK_PORT(port, at)


def check_host_ports(containers: Iterable[Tree], path: Path) -> Iterator[FieldError]:
    """A port of the host is given away once only."""
    seen: set[str] = set()
    for place, container in enumerate(containers):
        for index, port in enumerate(container.get("ports", ())):
            if not port.get("hostPort"):
                continue
            taken = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{port['hostPort']}"
            if taken in seen:
                at = path.index(place).child("ports").index(index).child("hostPort")
                yield errors.duplicate(at, taken)
            seen.add(taken)


def check_host_network_ports(around: Surroundings, path: Path) -> Iterator[FieldError]:
    """In the host's network a port is the host's; in a template it may still be left out."""
    if not around.host_network:
        return
    for place, container in enumerate(around.spec.get("containers") or ()):
        for index, port in enumerate(container.get("ports", ())):
            of_host = port.get("hostPort", 0)
            if (around.in_pod or of_host) and of_host != port.get("containerPort", 0):
                at = path.child("containers").index(place).child("ports").index(index).child("hostPort")
                yield errors.invalid(at, of_host, "must match `containerPort` when `hostNetwork` is true")
