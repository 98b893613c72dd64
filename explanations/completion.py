"""What every explanation gets last: who wrote what its cause names, and only remedies that the server accepts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson
from msgspec.structs import replace

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.text_pairs import shortened_pair

from .explanation import (
    MAX_ORIGINS,
    MAX_VALUE,
    Explanation,
    LastWrite,
    Origin,
    Remedy,
    json_text,
    writes_question,
)
from .facts import Facts, FieldPath, is_component
from .remedies import is_restorable, restored

_OTHERWISE: Final = "Or "
MAX_UNDONE: Final = 1_000
"""The characters of a value that a remedy gives back."""
MAX_TRIED: Final = 20
"""The remedies of one explanation that are tried."""


def completed(explanation: Explanation, facts: Facts) -> Explanation:
    """Return an explanation with the last writes of its origins, and without the remedies that the server refuses."""
    distinct = _distinct(explanation.origins)[:MAX_ORIGINS]
    origins = [replace(each, writes=_writes(each, facts)) for each in distinct]
    remedies = [*_accepted([*_undoing(origins[:1], explanation, facts), *explanation.remedies], facts)]
    if remedies and remedies[0].text.startswith(_OTHERWISE):  # the one before it is not offered
        text = remedies[0].text.removeprefix(_OTHERWISE)
        remedies[0] = replace(remedies[0], text=text[0].upper() + text[1:])
    return replace(explanation, origins=(*origins,), remedies=(*remedies,))


def _distinct(origins: Sequence[Origin]) -> Sequence[Origin]:
    return [*{(each.object, each.path): each for each in reversed(origins)}.values()][::-1]


def _writes(origin: Origin, facts: Facts) -> Sequence[LastWrite]:
    return [_last_write(each) for each in facts.writes_of(writes_question(origin))]


def _last_write(write: ReadOnlyTree) -> LastWrite:
    author: Mapping[str, Any] = write.get("author") or {}
    old, new = (orjson.dumps(write[name]).decode() if name in write else "" for name in ("before", "after"))
    before, after = shortened_pair(old, new, MAX_VALUE)
    return LastWrite(
        revision=write["revision"],
        source=write.get("source") or "",
        type=write["type"],
        time=write.get("time") or "",
        user=author.get("user") or "",
        program=author.get("manager") or str(author.get("agent") or "").partition(" ")[0],
        verb="/".join(filter(None, (author.get("verb"), author.get("subresource")))),
        before=before,
        after=after,
    )


def _undoing(origins: Sequence[Origin], explanation: Explanation, facts: Facts) -> Iterator[Remedy]:
    """Yield the change that gives the field of the cause the value back that it had before the last write of a person."""
    for origin in origins:
        last = next(iter(facts.writes_of(writes_question(origin))), None)
        if last is None or not origin.is_undone or not _is_of_users(origin.path) or not _is_whole(last):
            continue
        user = (last.get("author") or {}).get("user") or ""
        if is_component(user) or not is_restorable(origin.path, last.get("before"), last.get("after")):
            continue
        before = json_text(last["before"]) if "before" in last else "(not set)"
        text = f"Undo what {user or 'a user'} changed: {before} again:"
        remedy = restored(text, origin, last.get("before"), last.get("after"))
        if remedy.request not in [each.request for each in explanation.remedies]:
            yield remedy


def _is_whole(write: ReadOnlyTree) -> bool:
    """Return whether a write changed a field whose values are known, and are small enough for a command."""
    values = [write[name] for name in ("before", "after") if name in write]
    is_small = all(len(orjson.dumps(value)) <= MAX_UNDONE for value in values)
    return write["type"] == "MODIFIED" and not write.get("isMasked") and is_small


def _is_of_users(path: FieldPath) -> bool:
    """Return whether users write a field: most of the metadata the server writes."""
    if path[:1] == ("metadata",):
        return path[1:2] in (("labels",), ("annotations",))
    return path[:1] not in ((), ("status",))


def _accepted(remedies: Sequence[Remedy], facts: Facts) -> Iterator[Remedy]:
    """Yield the remedies that change nothing, or that the server accepts; one to which the user lacks the right, without its command."""
    for remedy in dict.fromkeys(remedies[:MAX_TRIED]):
        request = remedy.request
        refusal = "" if request is None else facts.refusal_of(request)
        if refusal is None:
            text = f"{remedy.text.rstrip(':.')}, for which you lack the right to {request}."
            yield replace(remedy, text=text, command="", request=None)
        elif not refusal:
            yield replace(remedy, request=None)
