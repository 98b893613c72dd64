"""What every explanation gets last: who wrote what its cause names, and only remedies that the server accepts."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from mockube.apimachinery.tree import ReadOnlyTree

from .explanation import MAX_ORIGINS, Explanation, LastWrite, Origin, Remedy, json_text
from .facts import Facts, WritesOf

MAX_TRIED: Final = 20
"""The remedies of one explanation that are tried."""


def completed(explanation: Explanation, facts: Facts) -> Explanation:
    """Return an explanation with the last writes of its origins, and without the remedies that the server refuses."""
    distinct = _distinct(explanation.origins)[:MAX_ORIGINS]
    origins = [replace(each, writes=_writes(each, facts)) for each in distinct]
    remedies = (*_accepted(explanation.remedies, facts),)
    return replace(explanation, origins=(*origins,), remedies=remedies)


def _distinct(origins: Sequence[Origin]) -> Sequence[Origin]:
    return [*{(each.object, each.path): each for each in reversed(origins)}.values()][::-1]


def _writes(origin: Origin, facts: Facts) -> Sequence[LastWrite]:
    named = origin.object
    question = WritesOf(
        kind=named.kind,
        group=named.api_version.rpartition("/")[0],
        namespace=named.namespace,
        name=named.name,
        path=origin.path,
    )
    return [_last_write(each) for each in facts.writes_of(question)]


def _last_write(write: ReadOnlyTree) -> LastWrite:
    author: Mapping[str, Any] = write.get("author") or {}
    return LastWrite(
        revision=write["revision"],
        type=write["type"],
        time=write.get("time") or "",
        user=author.get("user") or "",
        program=author.get("manager") or str(author.get("agent") or "").partition(" ")[0],
        verb="/".join(filter(None, (author.get("verb"), author.get("subresource")))),
        before=json_text(write["before"]) if "before" in write else "",
        after=json_text(write["after"]) if "after" in write else "",
    )


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
