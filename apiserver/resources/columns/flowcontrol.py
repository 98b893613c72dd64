"""The columns of flowcontrol.apiserver.k8s.io."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from apimachinery import conditions, meta
from apiserver.resources.columns import ages
from apiserver.resources.columns.parts import number, part, text
from apiserver.wire.table import AGE, NAME, Column, Printer, Tree


def _flow_schema(tree: Tree, now: datetime) -> list[Any]:
    method = part(tree, "spec", "distinguisherMethod")
    return [
        meta.name(tree),
        text(tree, "spec", "priorityLevelConfiguration", "name"),
        number(tree, "spec", "matchingPrecedence"),
        "<none>" if method is None else text(method, "type"),
        ages.age(tree, now),
        _is_dangling(tree),
    ]


def _precedence(tree: Tree) -> tuple[int, str]:
    """The order in which requests are matched."""
    return number(tree, "spec", "matchingPrecedence"), meta.name(tree)


def _is_dangling(tree: Tree) -> str:
    dangling = conditions.get(tree, "Dangling")
    return "?" if dangling is None else text(dangling, "status")


def _priority_level_configuration(tree: Tree, now: datetime) -> list[Any]:
    limited = part(tree, "spec", "limited")
    queuing = part(limited, "limitResponse", "queuing")
    return [
        meta.name(tree),
        text(tree, "spec", "type"),
        _number_in(limited, "nominalConcurrencyShares"),
        _number_in(queuing, "queues"),
        _number_in(queuing, "handSize"),
        _number_in(queuing, "queueLengthLimit"),
        ages.age(tree, now),
    ]


def _number_in(holder: Any, field: str) -> int | str:
    return "<none>" if holder is None else number(holder, field)


PRINTERS: Final[Mapping[str, Printer]] = {
    "FlowSchema": Printer(
        columns=(
            NAME,
            Column(name="PriorityLevel"),
            Column(name="MatchingPrecedence"),
            Column(name="DistinguisherMethod"),
            AGE,
            Column(name="MissingPL"),
        ),
        cells=_flow_schema,
        order=_precedence,
    ),
    "PriorityLevelConfiguration": Printer(
        columns=(
            NAME,
            Column(name="Type"),
            Column(name="NominalConcurrencyShares"),
            Column(name="Queues"),
            Column(name="HandSize"),
            Column(name="QueueLengthLimit"),
            AGE,
        ),
        cells=_priority_level_configuration,
    ),
}
