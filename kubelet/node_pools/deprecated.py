"""Deprecated flags of what all simulated nodes have in common, and the pool that they become."""

import sys
from argparse import ArgumentTypeError
from collections.abc import Iterable, Mapping
from typing import Annotated

from msgspec import Struct

from mockube.apimachinery.gotext import quote
from mockube.apimachinery.names import check_label_key, check_label_value
from mockube.apimachinery.wellknown import LABEL_ZONE
from mockube.component_base.flags import Flag, comma_separated

from .pool import NodePools, PoolError, plain_nodes

Pairs = tuple[tuple[str, str], ...]


def read_amounts(text: str) -> Pairs:
    """Read amounts by resource name: `cpu=32,memory=256Gi`."""
    from mockube.apimachinery import quantity  # noqa: PLC0415 - the flag is rarely set

    pairs = []
    for word in comma_separated(text):
        name, equals, amount = word.partition("=")
        if not name or not equals:
            raise ArgumentTypeError(f"{quote(word)} is not a name and an amount such as cpu=32")
        try:
            pairs.append((name, str(quantity.parse(amount))))
        except quantity.QuantityError as error:
            raise ArgumentTypeError(f"{quote(word)}: {error}") from error
    return tuple(pairs)


def read_zones(text: str) -> tuple[str, ...]:
    zones = comma_separated(text)
    for zone in zones:
        if problems := check_label_value(zone):
            raise ArgumentTypeError(f"{quote(zone)}: {problems[0]}")
    return zones


def read_labels(text: str) -> Pairs:
    """Read labels: `disk=ssd,tier=front`."""
    return tuple(map(_label, comma_separated(text)))


def _label(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    problems = check_label_key(key) + check_label_value(value)
    if not equals or problems:
        problem = problems[0] if equals else "it must be KEY=VALUE"
        raise ArgumentTypeError(f"{quote(word)} is not a label: {problem}")
    return key, value


class CommonSettings(Struct, frozen=True, kw_only=True):
    """Deprecated flags of simulated nodes"""

    simulate_node_capacity: Annotated[
        Pairs,
        Flag(
            "capacity of each node (cpu=32,memory=256Gi,pods=1100,ephemeral-storage=1Ti)",
            read_amounts,
            metavar="NAME=AMOUNT",
            deprecated="use --simulate-nodes=cpu=4,memory=16Gi:3 instead",
        ),
    ] = ()
    simulate_node_zones: Annotated[
        tuple[str, ...],
        Flag(
            "zones of the nodes, in turn (none)",
            read_zones,
            deprecated="use --simulate-nodes=zone=a,zone=b:3 instead",
        ),
    ] = ()
    node_labels: Annotated[
        Pairs,
        Flag(
            "more labels of the nodes (none)",
            read_labels,
            metavar="KEY=VALUE",
            deprecated="use --simulate-nodes=label=disk=ssd:3 instead",
        ),
    ] = ()


def pool_of(
    nodes: NodePools,
    *,
    capacity: Mapping[str, str] | None = None,
    zones: tuple[str, ...] = (),
    labels: Mapping[str, str] | None = None,
) -> NodePools:
    """Return the pool of a number of nodes that have these in common; raise PoolError if the nodes are in pools already."""
    if not capacity and not zones and not labels:
        return nodes
    if nodes.pools != plain_nodes(nodes.count).pools:
        raise PoolError("pools have capacity, zones and labels of their own: write them there")
    from .document import PoolDocument  # noqa: PLC0415 - the flags are rarely set
    from .rules import complete  # noqa: PLC0415 - as above

    # Pools have a setting for the label of the zone. Zones took precedence over the label.
    other_labels = {key: value for key, value in (labels or {}).items() if key != LABEL_ZONE}
    zones = zones or tuple(filter(None, [(labels or {}).get(LABEL_ZONE)]))
    document = PoolDocument(count=nodes.count, zones=zones, labels=other_labels, capacity=capacity or {})
    settings = [
        *(f"{name}={amount}" for name, amount in document.capacity.items()),
        *(f"zone={zone}" for zone in zones),
        *(f"label={key}={value}" for key, value in other_labels.items()),
    ]
    return complete([document], f"{','.join(settings)}:{nodes.count}")


def pool_of_settings(nodes: NodePools, settings: CommonSettings) -> NodePools:
    """Return the pool that the deprecated flags describe; raise PoolError that names them if there is none."""
    try:
        return pool_of(
            nodes,
            capacity=dict(settings.simulate_node_capacity),
            zones=settings.simulate_node_zones,
            labels=dict(settings.node_labels),
        )
    except PoolError as error:
        raise PoolError(f"{', '.join(set_flags(settings))}: {error}") from error


def set_flags(settings: CommonSettings) -> list[str]:
    """Return the names of the deprecated flags that are set."""
    return [f"--{name.replace('_', '-')}" for name in settings.__struct_fields__ if getattr(settings, name)]


def report(flags: Iterable[str], replacement: str) -> None:
    """Print a line to stderr for each flag, in the words of Kubernetes' programs."""
    sys.stderr.writelines(f"Flag {flag} has been deprecated, use {replacement} instead\n" for flag in flags)
