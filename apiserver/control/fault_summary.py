"""What the table of Faults shows of one: what it does, to which requests, and to how many more."""

from collections.abc import Iterator
from typing import Any, Final

from mockube.apimachinery.tree import ReadOnlyTree, Tree

from .effects import EFFECTS
from .matching import Match
from .partitions import PARTITION
from .schemas import column

COLUMNS: Final = (
    column("Effect", ".summary.effect", "What happens to the requests."),
    column("Requests", ".summary.requests", "Which requests match: all criteria of spec.match."),
    column(
        "Share", ".spec.share", "The probability with which a matching request is chosen.", type_="number"
    ),
    column("Skip", ".spec.skip", "How many chosen requests are skipped first.", type_="integer"),
    column(
        "Left",
        ".summary.left",
        "How many more requests get it, of how many; without it, the number has no limit.",
    ),
    column("Hits", ".status.hits", "How many requests got it.", type_="integer"),
)
_EFFECTS: Final = (*(effect.name for effect in EFFECTS), PARTITION)
_ARGUMENTS: Final = ("when", "status", "holder", "revision", "seconds")
"""The arguments of effects that are shown; texts of messages and objects are too long."""
_CONDITIONS: Final = {"untilWrite": "until write", "fromEvent": "from event"}
_ALL: Final = "all of users"
"""Without criteria, requests of mockube's own controllers do not match."""


def summary(tree: Tree) -> Tree:
    spec, status = tree["spec"], tree.get("status") or {}
    cells: Tree = {
        "effect": ", ".join(_effect(name, spec[name]) for name in _EFFECTS if name in spec),
        "requests": " ".join(_criteria(spec.get("match") or {})) or _ALL,
    }
    if "times" in spec:
        cells["left"] = f"{spec['times'] - status.get('hits', 0)}/{spec['times']}"
    return cells


def _effect(name: str, arguments: ReadOnlyTree) -> str:
    values = [_value(argument, arguments[argument]) for argument in _ARGUMENTS if argument in arguments]
    return " ".join([name, *values, *(text for field, text in _CONDITIONS.items() if arguments.get(field))])


def _value(argument: str, value: Any) -> str:
    return f"{value:g}s" if argument == "seconds" else str(value)


def _criteria(match: ReadOnlyTree) -> Iterator[str]:
    for name in Match.__struct_fields__:
        if name in match:
            yield f"{name}={','.join(match[name]) if name == 'verbs' else match[name]}"
