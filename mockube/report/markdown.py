"""A summary as Markdown, for a comment of a pull request or an agent."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.counted import counted
from mockube.component_base.printable import printable

_NOT_SET: Final = "(not set)"
_BACKTICKS: Final = re.compile("`+")
_ENTITY: Final = re.compile(r"&(?=#?\w+;)")
_EMPHASIS: Final = re.compile(r"\\(?=[!-/:-@[-`{-~]|$)|[*~]|(?<![^\W_])_|_(?![^\W_])")
"""What makes a part of a line bold, italic or struck out, and what escapes that: an underscore within a word does not."""
_BLOCK: Final = re.compile(r"^[#>~+*=-]|(?<=^\d)[.)]|(?<=^\d\d)[.)]")
"""What makes a line a title, a list, a quote or code, where it begins with it."""
_ESCAPES: Final = {
    "<": "&lt;",
    "`": "'",
    "@": "@\u200b",  # a space without width: an entity could be a mention
    "](": "]\\(",
    "|": "\\|",
}


def markdown_of(summary: ReadOnlyTree) -> str:
    return "\n".join(_lines(summary)) + "\n"


def _lines(summary: ReadOnlyTree) -> Iterator[str]:
    yield f"# {_text(summary.get('title') or 'A cluster of mockube')}"
    yield ""
    if "result" in summary:
        yield f"**{_text(summary['result'])}**"
        yield ""
    if "message" in summary:
        yield from _fenced(summary["message"].splitlines())
        yield ""
    counts = summary["counts"]
    revision = f", revision {summary['revision']}" if "revision" in summary else ""
    time = f", {summary['time']}" if "time" in summary else ""
    yield (
        f"Kubernetes {summary['kubernetes']}{revision}{time}: {counted(counts['objects'], 'object', 'objects')}, "
        f"{counts['notHealthy']} not healthy, {counted(counts['changes'], 'change', 'changes')}, "
        f"{counted(counts['requests'], 'request', 'requests')}, {counted(counts['events'], 'event', 'events')}."
    )
    yield from _problems(summary.get("problems", ()))
    yield from _refusals(summary.get("refused", ()))
    yield from _faults(summary.get("faults", ()))
    yield from _authors(summary.get("authors", ()))
    yield from _warnings(summary.get("warnings", ()))
    notes = summary.get("notes", ())
    if notes:
        yield from ("", "## What is left out", "", *(f"- {_text(note)}" for note in notes))


def _problems(problems: Sequence[ReadOnlyTree]) -> Iterator[str]:
    yield from ("", "## What is not healthy, and why")
    if not problems:
        yield from ("", "Nothing.")
    for problem in problems:
        origins = problem.get("origins", ())
        heading = origins[0]["object"] if origins else problem["object"]
        yield from ("", f"### {_object(heading)}", "")
        doubt = "Not known: " if problem["state"] == "Unknown" else ""
        yield f"{doubt}{_text(problem['cause'])}"
        yield ""
        yield from map(_origin_write, _writes_of_origins(origins))
        if origins or problem.get("affected"):
            yield f"- not healthy because of it: {_affected(problem, origins)}"
        yield from (f"- {_text(each['text'])}" for each in problem.get("evidence", ()))
        yield from (f"- node {_code(each['node'])}: {_node(each)}" for each in problem.get("nodes", ()))
        for log in problem.get("logs", ()):
            when = " before its restart" if log["previous"] else ""
            yield from ("", f"The log of {_code(log['container'])}{when}:", "", *_fenced(log["lines"]))
        yield from _section("Last writes", [_write(write) for write in problem.get("lastWrites", ())])
        yield from _section("What would change it", [*map(_remedy, problem.get("remedies", ()))])
        commands = [*problem.get("commands", ()), *(each["command"] for each in origins if "command" in each)]
        yield from _section("More", [*map(_code, commands)])


def _writes_of_origins(origins: Sequence[ReadOnlyTree]) -> Iterator[tuple[ReadOnlyTree, ReadOnlyTree]]:
    for origin in origins:
        for write in origin.get("writes", ()):
            yield origin, write


def _origin_write(named: tuple[ReadOnlyTree, ReadOnlyTree]) -> str:
    """Return a line about a write of what the cause names."""
    origin, write = named
    program = f" ({write['program']})" if write.get("program") else ""
    author = _code(f"{write.get('user') or write.get('source') or '(not known)'}{program}")
    before, after = (write.get(name) or _NOT_SET for name in ("before", "after"))
    value = after if before == _NOT_SET else f"{before} -> {after}"
    field = f": {_code(origin['field'] + ': ' + value)}" if origin.get("field") else ""
    kind = {"ADDED": "created ", "DELETED": "deleted "}.get(write["type"], "wrote ")
    return f"- {write.get('time') or 'revision ' + str(write['revision'])} {author} {kind}{_object(origin['object'])}{field}"


def _affected(problem: ReadOnlyTree, origins: Sequence[ReadOnlyTree]) -> str:
    """Return the names of the objects that a cause concerns, by kind."""
    affected = [*problem.get("affected", ())]
    by_kind: dict[str, list[str]] = {}
    for each in (*affected, problem["object"]) if origins else affected:
        by_kind.setdefault(each["kind"].lower(), []).append(each["name"])
    names = "; ".join(f"{kind} {', '.join(map(_code, some))}" for kind, some in by_kind.items())
    more = problem.get("affectedCount", 0) - len(affected)
    return f"{names}{f' and {more} more' if more else ''}"


def _node(verdict: ReadOnlyTree) -> str:
    detail = f" ({verdict['detail']})" if verdict.get("detail") else ""
    return _text(f"{verdict['plugin']}: {verdict['reason']}{detail}")


def _refusals(refused: Sequence[ReadOnlyTree]) -> Iterator[str]:
    if not refused:
        return
    yield from ("", "## Refused requests", "")
    for each in refused:
        times = f", {each['count']} times" if each["count"] > 1 else ""
        fault = f", by the fault {_code(each['fault'])}" if each.get("fault") else ""
        yield f"- {each.get('code', 'cut')} {_code(each['verb'] + ' ' + each.get('uri', ''))} of {_code(each.get('user', 'nobody'))}{times}{fault}: {_text(each.get('cause') or each.get('message', ''))}"
        yield from (f"  - {_remedy(remedy)}" for remedy in each.get("remedies", ()))
        if each.get("command"):
            yield f"  - {_code(each['command'])}"


def _faults(faults: Sequence[ReadOnlyTree]) -> Iterator[str]:
    yield from _section("Faults that are injected", [_code(fault["name"]) for fault in faults])


def _authors(authors: Sequence[ReadOnlyTree]) -> Iterator[str]:
    if not authors:
        return
    yield from ("", "## Last writes of each author")
    for author in authors:
        count = "write" if author["writes"] == 1 else "writes, the last ones" if author["last"] else "writes"
        yield from (
            "",
            f"{_code(author['author'])}, {author['writes']} {count}{':' if author['last'] else ''}",
            "",
        )
        yield from (f"- {_write(write, by=False)}" for write in author["last"])


def _warnings(warnings: Sequence[ReadOnlyTree]) -> Iterator[str]:
    if not warnings:
        return
    yield from ("", "## Warnings", "")
    for event in warnings:
        times = f" ({event['count']} times)" if event["count"] > 1 else ""
        yield f"- {_object(event)} {_text(event['reason'])}: {_text(event['message'])}{times}"


def _write(write: ReadOnlyTree, *, by: bool = True) -> str:
    author = f" by {_code(write['author'])}" if by else ""
    kind = {"ADDED": "created ", "DELETED": "deleted "}.get(write["type"], "")
    fields = "; ".join(map(_code, write["fields"]))
    more = f" and {write['omittedFields']} more fields" if write.get("omittedFields") else ""
    others = write.get("others", ())
    count = write.get("othersCount", 0)
    names = (
        f" and {count} more ({', '.join(map(_code, others))}{', …' if count > len(others) else ''})"
        if count
        else ""
    )
    return f"{write['time'] or 'revision ' + str(write['revision'])} {kind}{_object(write)}{names}{author}, {write['verb']}{': ' if fields else ''}{fields}{more}"


def _section(title: str, lines: Sequence[str]) -> Sequence[str]:
    return ["", f"{title}:", "", *(f"- {line}" for line in lines)] if lines else ()


def _remedy(remedy: ReadOnlyTree) -> str:
    return _text(remedy["text"]) + (f" {_code(remedy['command'])}" if remedy.get("command") else "")


def _object(subject: ReadOnlyTree) -> str:
    place = f" in {_code(subject['namespace'])}" if subject.get("namespace") else ""
    return f"{_code(subject['kind'].lower() + '/' + subject['name'])}{place}"


def _text(text: str) -> str:
    """Return a text on one line that is no markup, and mentions nobody."""
    line = " ".join(printable(text.replace("\n", " ")).split())
    line = _ENTITY.sub("&amp;", line)
    line = _EMPHASIS.sub(r"\\\g<0>", line)
    for old, new in _ESCAPES.items():
        line = line.replace(old, new)
    return _BLOCK.sub(r"\\\g<0>", line)


def _code(text: str) -> str:
    """Return a text as code, in as many backticks as it needs."""
    line = " ".join(printable(text.replace("\n", " ")).split())
    length = max(map(len, _BACKTICKS.findall(line)), default=0)
    space = " " if length else ""
    return f"{'`' * (length + 1)}{space}{line}{space}{'`' * (length + 1)}" if line else ""


def _fenced(lines: Sequence[str]) -> Sequence[str]:
    length = max((len(run) for line in lines for run in _BACKTICKS.findall(line)), default=0)
    fence = "`" * max(3, length + 1)
    return [f"{fence}text", *map(printable, lines), fence]
