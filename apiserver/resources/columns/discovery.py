"""The columns of discovery.k8s.io."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from apimachinery import meta
from apiserver.resources.columns import ages
from apiserver.resources.columns.lists import shortened
from apiserver.resources.columns.parts import items, part, text
from apiserver.wire.table import AGE, NAME, Column, Printer, Tree


def _endpoint_slice(tree: Tree, now: datetime) -> list[Any]:
    addresses = [address for endpoint in items(tree, "endpoints") for address in items(endpoint, "addresses")]
    return [
        meta.name(tree),
        text(tree, "addressType"),
        shortened([_port(port) for port in items(tree, "ports")]) or "<unset>",
        shortened(addresses) or "<unset>",
        ages.age(tree, now),
    ]


def _port(port: Any) -> str:
    """Without a number it stands for all ports, or for those of a name."""
    number = part(port, "port")
    return text(port, "name", default="*") if number is None else str(number)


PRINTERS: Final[Mapping[str, Printer]] = {
    "EndpointSlice": Printer(
        columns=(NAME, Column(name="AddressType"), Column(name="Ports"), Column(name="Endpoints"), AGE),
        cells=_endpoint_slice,
    ),
}
