"""Ports of a pod's containers that stand in each other's way, or whose names do."""

from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from apimachinery.gotext import quote
from apimachinery.paths import Path
from apiserver.validation.rules import Tree

Placed: TypeAlias = tuple[Tree, Path]

COMPARED: Final = 200
"""Ports of a pod: each is compared with all before it that have its number."""


def of_ports(containers: Iterable[Placed]) -> list[str]:
    placed = [
        (port, path.child("ports").index(index))
        for container, path in containers
        for index, port in enumerate(container.get("ports") or ())
    ]
    return [*_clashes(placed[:COMPARED]), *_names(placed)] if placed else []


def _clashes(placed: Iterable[Placed]) -> Iterator[str]:
    seen: dict[tuple[int, str], list[Placed]] = {}
    for port, path in placed:
        if port.get("hostIP") and not port.get("hostPort"):
            yield f"{path}: hostIP set without hostPort: {_shown(port)}"
        others = seen.setdefault((port.get("containerPort", 0), port.get("protocol", "")), [])
        for other, there in others:
            if clash := _clash(port, other):
                yield f"{path}: {clash} port definition with {there}"
        others.append((port, path))


def _clash(port: Tree, other: Tree) -> str:
    """How two definitions of one port of a protocol are at odds; "" if they are not."""
    host_ports = port.get("hostPort", 0), other.get("hostPort", 0)
    host_ips = port.get("hostIP", ""), other.get("hostIP", "")
    if len(set(host_ports)) == len(set(host_ips)) == 1:
        return "duplicate"
    if not all(host_ports):
        return "overlapping"
    if len(set(host_ports)) == 1 and not all(host_ips):
        return "dangerously ambiguous"
    return ""


_FIELDS: Final = {"name": "", "hostPort": 0, "containerPort": 0, "protocol": "", "hostIP": ""}
"""What a port is made of, in Go's order, and what a field is that is not there."""


def _shown(port: Tree) -> str:
    """A port as Go shows a struct."""
    fields = (f"{name[0].upper()}{name[1:]}:{port.get(name, empty)}" for name, empty in _FIELDS.items())
    return f"{{{' '.join(fields)}}}"


def _names(placed: Iterable[Placed]) -> Iterator[str]:
    first: dict[str, Path] = {}
    for port, path in placed:
        name = port.get("name")
        if not name:
            continue
        if name in first:
            other = first[name]
            yield (
                f"{path}: duplicate port name {quote(name)} with {other}, "
                f"services and probes that select ports by name will use {other}"
            )
        else:
            first[name] = path
