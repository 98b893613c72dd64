"""Which nodes have devices that are alike to claims: their slices without names of pools, and which devices are in use. Pure.

Devices have attributes that differ on each node, such as a uuid. Those that no expression of a claim names do not count.
"""

import re
import sys
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from mockube.apimachinery.tree import ReadOnlyTree

from .allocation import RequestAlternative
from .pools import DeviceId

AttributeNames = frozenset[str] | None
"""The names, without domains, of the attributes and capacities that claims read; None if they may read any."""
_MAX_SETS: Final = 16
"""How many sets of names are kept for each node."""
_TEXT: Final = r"""(?:"[^"\\]*"|'[^'\\]*')"""
_MAP: Final = rf"device\.(?:attributes|capacity)\s*\[\s*{_TEXT}\s*\]"
_ACCESS: Final = re.compile(
    rf"(?P<contained>{_TEXT})\s+in\s+{_MAP}(?!\s*[.\[])"
    rf"|{_MAP}\s*(?:\.\??\s*(?P<field>[A-Za-z_]\w*+)(?!\s*\()|\[\??\s*(?P<key>{_TEXT})\s*\])"
    r"|device\.driver\b"
)
"""The ways to read a device of which the attribute is known."""
_DEVICE: Final = re.compile(r"\bdevice\b")


def attribute_names(requests: Iterable[RequestAlternative], claims: Iterable[ReadOnlyTree]) -> AttributeNames:
    """Return what the selectors of requests and the constraints of their claims read of devices."""
    names: set[str] = set()
    for request in requests:
        names.update(map(_identifier, (request.spec.get("capacity") or {}).get("requests") or ()))
        for spec in (request.device_class["spec"], request.spec):
            for selector in spec.get("selectors") or ():
                of_selector = _names_in(selector["cel"]["expression"])
                if of_selector is None:
                    return None
                names |= of_selector
    for claim in claims:
        for constraint in claim["spec"]["devices"].get("constraints") or ():
            names.add(
                _identifier(constraint.get("matchAttribute") or constraint.get("distinctAttribute") or "")
            )
    return frozenset(names)


def _names_in(expression: str) -> set[str] | None:
    """Return the names that an expression reads; None if it reads devices in other ways, such as all of a map."""
    accesses = [*_ACCESS.finditer(expression)]
    if len(accesses) < len(_DEVICE.findall(expression)):
        return None
    names = (access["contained"] or access["key"] or access["field"] for access in accesses)
    return {_identifier(name.strip("\"'")) for name in names if name}


def _identifier(qualified_name: str) -> str:
    return qualified_name.rpartition("/")[2]


class _Fingerprint(NamedTuple):
    slices: Sequence[ReadOnlyTree]
    text: str
    """The same for nodes whose devices are alike."""
    ids: Sequence[DeviceId]


class DeviceFingerprints:
    """The fingerprints of the devices of nodes, which are computed again when slices change."""

    def __init__(self) -> None:
        self._by_names: dict[AttributeNames, dict[str, _Fingerprint]] = {}

    def of(
        self, node: str, slices: Sequence[ReadOnlyTree], names: AttributeNames, in_use: Container[DeviceId]
    ) -> tuple[str, tuple[bool, ...]]:
        """Return the same for nodes, with slices of their own, on which a search for devices has the same result."""
        fingerprints = self._by_names.get(names)
        if fingerprints is None:
            if len(self._by_names) >= _MAX_SETS:
                self._by_names.clear()
            fingerprints = self._by_names[names] = {}
        fingerprint = fingerprints.get(node)
        if fingerprint is None or not _are_same(fingerprint.slices, slices):
            fingerprint = fingerprints[node] = _fingerprint_of(node, slices, names)
        return fingerprint.text, tuple(device in in_use for device in fingerprint.ids)


def _fingerprint_of(node: str, slices: Sequence[ReadOnlyTree], names: AttributeNames) -> _Fingerprint:
    pools: dict[tuple[str, str], list[ReadOnlyTree]] = {}
    for resource_slice in slices:
        spec = resource_slice["spec"]
        pools.setdefault((spec["driver"], spec["pool"]["name"]), []).append(resource_slice)
    described: list[Any] = []
    ids: list[DeviceId] = []
    for (driver, pool), of_pool in sorted(pools.items()):
        of_pool.sort(key=lambda one: str(one["metadata"]["name"]))
        described.append((driver, [_described(one["spec"], names) for one in of_pool]))
        if not _is_plain(of_pool):
            described.append(node)  # Other slices of the pool count, too: no other node is like this one.
        ids += (DeviceId(driver, pool, name) for one in of_pool for name in _device_names(one))
    return _Fingerprint(slices, sys.intern(repr(described)), ids)  # many nodes share it


def _are_same(known: Sequence[ReadOnlyTree], slices: Sequence[ReadOnlyTree]) -> bool:
    return len(known) == len(slices) and all(one is other for one, other in zip(known, slices, strict=True))


def _is_plain(slices: Sequence[ReadOnlyTree]) -> bool:
    """Return whether these are all slices of a pool, of one generation."""
    pools = [one["spec"]["pool"] for one in slices]
    generations = {pool.get("generation", 0) for pool in pools}
    return len(generations) == 1 and pools[0].get("resourceSliceCount", 1) == len(slices)


def _device_names(resource_slice: ReadOnlyTree) -> Iterator[str]:
    return (device["name"] for device in resource_slice["spec"].get("devices") or ())


def _described(spec: ReadOnlyTree, names: AttributeNames) -> Any:
    devices = spec.get("devices") or ()
    others = {name: value for name, value in spec.items() if name not in ("pool", "nodeName", "devices")}
    return others, devices if names is None else [_without_others(device, names) for device in devices]


def _without_others(device: ReadOnlyTree, names: frozenset[str]) -> ReadOnlyTree:
    return {
        field: {name: one for name, one in value.items() if _identifier(name) in names}
        if field in ("attributes", "capacity")
        else value
        for field, value in device.items()
    }
