"""Endpoints: addresses that serve the same ports are brought together, however the client grouped them."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import orjson

from apimachinery.groups import GroupResource
from apiserver.resources.strategies.empty_lists import none_when_empty
from apiserver.resources.strategy import MAIN, Request, Strategy, Tree

Text: TypeAlias = bytes
"""A port or an address as JSON, so that equal ones are one."""


def _text(value: Any) -> Text:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def repack(subsets: list[Tree]) -> list[Tree]:
    """Each port with all its addresses, and the ports that have the same addresses in one subset."""
    addresses: dict[Text, dict[Text, tuple[Tree, bool]]] = {}
    ports: dict[Text, Tree | None] = {}
    for subset in subsets:
        for port in subset.get("ports") or [None]:
            ports.setdefault(_text(port), port)
            of_port = addresses.setdefault(_text(port), {})
            for address, ready in _addresses(subset):
                _, known = of_port.get(_text(address), (address, True))
                of_port[_text(address)] = address, ready and known
    return _subsets(addresses, ports)


def _addresses(subset: Tree) -> Iterator[tuple[Tree, bool]]:
    """An address that is ready and not ready is not ready."""
    for address in subset.get("addresses") or ():
        yield address, True
    for address in subset.get("notReadyAddresses") or ():
        yield address, False


def _subsets(
    addresses: dict[Text, dict[Text, tuple[Tree, bool]]], ports: dict[Text, Tree | None]
) -> list[Tree]:
    grouped: dict[Text, list[Text]] = {}
    for port, of_port in addresses.items():
        if of_port:
            group = _text(sorted((address.decode(), ready) for address, (_, ready) in of_port.items()))
            grouped.setdefault(group, []).append(port)
    return [
        _subset(list(addresses[group[0]].values()), [ports[port] for port in group])
        for group in grouped.values()
    ]


def _subset(addresses: list[tuple[Tree, bool]], ports: list[Tree | None]) -> Tree:
    ordered = sorted(addresses, key=lambda entry: _order(entry[0]))
    subset = {
        "addresses": [address for address, ready in ordered if ready],
        "notReadyAddresses": [address for address, ready in ordered if not ready],
        "ports": [port for port in ports if port is not None],
    }
    return {field: value for field, value in subset.items() if value}


def _order(address: Tree) -> tuple[str, str]:
    return address.get("ip", ""), (address.get("targetRef") or {}).get("uid", "")


def _canonicalize(endpoints: Tree) -> None:
    if subsets := endpoints.get("subsets"):
        endpoints["subsets"] = repack(subsets)
        if not endpoints["subsets"]:
            del endpoints["subsets"]


def _without_topology(slice_: Tree, _request: Request) -> None:
    """What v1 left behind of its predecessor can be read, and no longer written."""
    if endpoints := slice_.get("endpoints"):
        slice_["endpoints"] = [
            {field: value for field, value in endpoint.items() if field != "deprecatedTopology"}
            for endpoint in endpoints
        ]


_write_lists = none_when_empty(("endpoints",), ("ports",))


def _begin_slice(new: Tree, request: Request) -> None:
    _write_lists(new)
    _without_topology(new, request)


def _update_slice(new: Tree, old: Tree, request: Request) -> None:
    _write_lists(new)
    if new.get("endpoints") != old.get("endpoints"):
        _without_topology(new, request)


STRATEGIES = {
    GroupResource("", "endpoints"): Strategy(create_on_update=True, canonicalize=_canonicalize),
    GroupResource("discovery.k8s.io", "endpointslices"): Strategy(
        generation=(("addressType",), ("endpoints",), ("ports",), ("metadata", "labels")),
        first_generation=1,
        prepare_create=_begin_slice,
        prepare_update={MAIN: _update_slice},
    ),
}
