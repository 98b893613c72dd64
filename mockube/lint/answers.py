"""From the answer of a server to findings. Pure."""

import re
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery.schema.model import SchemaType
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.api_resource import Resource

from . import field_hints
from .dropped_fields import dropped_fields
from .findings import ObjectFinding, Outcome
from .server import Answer

_DROPPED_FIELD: Final = re.compile(r'(unknown|duplicate) field "(.*)"\Z', re.DOTALL)
_FIELD_OF_WARNING: Final = re.compile(r"([a-z]\w*(?:\.\w+|\[[^\]]*\])+): ")
_FIELD_OF_GO: Final = re.compile(r"Go struct field \w+\.(\S+) of type")


class SentObject(Struct, frozen=True, kw_only=True):
    """An object, and what a server of a minor knows of its kind."""

    tree: ReadOnlyTree
    row: Resource
    schema: Callable[[], SchemaType | None]
    """Returns the type of the object, which takes long to build for a custom resource."""
    minor: str


def findings_of(answer: Answer, sent: SentObject) -> Iterator[ObjectFinding]:
    """Yield the findings of an answer to the creation of an object."""
    if not answer.is_success:
        yield from _refusals(answer.tree)
    warned_fields: set[str] = set()
    for text in answer.warnings:
        dropped = _DROPPED_FIELD.match(text)
        if dropped is None:
            field = _FIELD_OF_WARNING.match(text)
            yield ObjectFinding(outcome=Outcome.WARNED, message=text, field=field[1] if field else "")
            continue
        warned_fields.add(dropped[2])
        hint = _unknown_field_hint(sent, dropped[2]) if dropped[1] == "unknown" else ""
        yield ObjectFinding(outcome=Outcome.DROPPED, message=text + hint, field=dropped[2])
    if answer.is_success:
        yield from _dropped_silently(sent, answer.tree, warned_fields)


def _dropped_silently(
    sent: SentObject, stored: ReadOnlyTree, warned_fields: Collection[str]
) -> Iterator[ObjectFinding]:
    """Yield the fields that are not in the stored object, and of which there was no warning."""
    for dropped in dropped_fields(sent.tree, stored):
        if any(f"{dropped.inner_path}.".startswith(f"{warned}.") for warned in warned_fields):
            continue
        if not dropped.value and not field_hints.is_kept_if_zero(sent.schema(), dropped.inner_path):
            continue
        path, gate = field_hints.gated_field(sent.row.group_resource, dropped)
        message = f'field "{path}" is not kept{field_hints.gate_hint(gate, sent.minor)}'
        yield ObjectFinding(outcome=Outcome.DROPPED, message=message, field=path)


def _unknown_field_hint(sent: SentObject, field: str) -> str:
    row = sent.row
    return field_hints.unknown_field_hint(sent.schema(), row.api_version, row.kind, field, sent.minor)


def _refusals(status: ReadOnlyTree) -> Iterator[ObjectFinding]:
    """Yield the causes of an invalid object, or the message of another error."""
    causes = [cause for cause in _causes(status) if cause.get("field") and cause.get("message")]
    if status.get("reason") == "Invalid" and causes:
        for cause in causes:
            message = f"{cause['field']}: {cause['message']}"
            yield ObjectFinding(outcome=Outcome.REFUSED, message=message, field=cause["field"])
        return
    message = status.get("message", "")
    field = _FIELD_OF_GO.search(message)
    yield ObjectFinding(outcome=Outcome.REFUSED, message=message, field=field[1] if field else "")


def _causes(status: ReadOnlyTree) -> Any:
    return (status.get("details") or {}).get("causes") or ()
