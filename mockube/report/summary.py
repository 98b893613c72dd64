"""The summary of a recording: what is not healthy and why, what was refused, and who did what last.

It is what a report has in its beginning, and all that one in Markdown or JSON has.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final

import orjson
from msgspec import Struct
from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.explanations.commands import command, kind_argument, namespace_flags, why_object

from .authors import is_component_author
from .causes import Cause, causes_of, users_writes
from .recording import ContainerLog, ObjectIdentity, Recording
from .refusals import Refusal, refusals
from .writes import Writes, WritesOfUser, key_of

MAX_TEXT: Final = 20 * 1024
"""The bytes of a report in Markdown or JSON."""
MAX_DEPTH: Final = 10
_COMMAND, _COMMANDS = "command", "commands"
_WHOLE: Final = frozenset({"kind", "namespace", "name", "key", "user", "author", "field", "cause"})
"""The fields that name something, or say why: a part of a name is another one, and the beginning of a cause says nothing."""
MAX_NAME: Final = 400
"""The characters up to which these are whole."""


class Limits(Struct, frozen=True, kw_only=True):
    """How much of each part a summary has. A cause that is in it has the objects and the authors that it names."""

    causes: int
    """The causes that users wrote: fewer than there are only where nothing else is left to leave out."""
    problems: int
    """The causes that no user wrote."""
    affected: int
    """The other objects that are not healthy because of the same."""
    evidence: int
    nodes: int
    origin_writes: int
    """The writes of a field that a cause names."""
    writes: int
    """The last writes of a problem's object."""
    user_writes: int
    """The last writes of an author who is no part of the control plane."""
    component_writes: int
    """Those of parts of the control plane: of a problem's object, and of an author."""
    authors: int
    refusals: int
    warnings: int
    log_lines: int
    commands: int
    notes: int
    text: int
    """The characters of a text."""


FULL: Final = Limits(
    causes=1_000,
    problems=100,
    affected=200,
    evidence=20,
    nodes=50,
    origin_writes=10,
    writes=8,
    user_writes=24,
    component_writes=8,
    authors=40,
    refusals=20,
    warnings=50,
    log_lines=40,
    commands=20,
    notes=100,
    text=2_000,
)
"""For a page, which has room."""
_CUTS: Final[Sequence[Mapping[str, int]]] = (
    {
        "problems": 20,
        "affected": 40,
        "evidence": 6,
        "nodes": 8,
        "writes": 4,
        "component_writes": 4,
        "authors": 8,
        "refusals": 8,
        "warnings": 8,
        "log_lines": 10,
        "notes": 20,
        "text": 500,
    },
    {"component_writes": 1},
    {"component_writes": 0, "nodes": 5, "log_lines": 6, "warnings": 4},
    {"problems": 12, "affected": 24, "evidence": 4, "refusals": 5, "notes": 12, "text": 300},
    {"evidence": 2, "nodes": 3, "log_lines": 4, "warnings": 2, "commands": 3, "text": 240},
    {"problems": 8, "affected": 12, "authors": 4, "refusals": 3, "notes": 8, "writes": 2},
    {"evidence": 1, "nodes": 2, "log_lines": 2, "warnings": 1, "origin_writes": 2, "text": 160},
    {"problems": 4, "affected": 8, "refusals": 2, "notes": 4, "user_writes": 12, "commands": 1, "writes": 1},
    {"problems": 1, "evidence": 0, "nodes": 0, "log_lines": 0, "writes": 0, "commands": 0},
    {"affected": 2, "user_writes": 4, "origin_writes": 1, "refusals": 1, "notes": 2},
    {"user_writes": 1, "authors": 1, "notes": 1},
)
"""What is left out, one after the other: first what programs of the control plane wrote, which is what followed from the cause."""
LEVELS: Final = tuple(accumulate(_CUTS, lambda limits, cut: replace(limits, **cut), initial=FULL))[1:]
"""For a text of limited size: the first one that fits is taken."""


_MORE_CAUSES: Final = 8
_FEWER_CAUSES: Final = range(MAX_TEXT // 200, 0, -2)
"""The numbers of causes that are tried, where all of them have no room: a cause takes 200 bytes at least."""


def fitted(
    recording: Recording, write: Callable[[Tree], str], *, writes: Writes | None = None, more: str = ""
) -> str:
    """Return the text of the most detailed summary that is not too large; `more` says where what is left out is.

    Of more causes than have room in the shortest one, the first ones are in it. The room that is left is for more causes.
    """
    writes = writes or Writes(recording.changes)

    def written(limits: Limits) -> str:
        return write(summarize(recording, limits, writes=writes, more=more))

    text = ""
    limits = LEVELS[-1]
    for limits in (*LEVELS, *(replace(limits, causes=count) for count in _FEWER_CAUSES)):
        text = written(limits)
        if len(text.encode()) <= MAX_TEXT:
            break
    for problems in range(limits.problems + _MORE_CAUSES, FULL.problems + 1, _MORE_CAUSES):
        longer = written(replace(limits, problems=problems))
        if longer == text or len(longer.encode()) > MAX_TEXT:
            break
        text = longer
    return text


def summarize(
    recording: Recording, limits: Limits = FULL, *, writes: Writes | None = None, more: str = ""
) -> Tree:
    """Return the summary of a recording, with at most so much of each part, and how much is left out."""
    summarizer = _Summarizer(recording, limits, writes or Writes(recording.changes))
    causes, refused = causes_of(recording), refusals(recording.requests)
    of_others = [cause for cause in causes if not cause.is_of_user]
    of_users = [cause for cause in causes if cause.is_of_user]
    problems = [
        *map(summarizer.problem, [*of_users[: limits.causes], *of_others[: limits.problems]]),
    ]
    authors, warnings = summarizer.writes.authors(), [*_other_warnings(recording)]
    shown_authors = _with_named(authors, limits.authors, problems)
    tree: Tree = {
        "title": recording.subject.title,
        "result": recording.subject.result,
        "message": recording.subject.text,
        "kubernetes": recording.version,
        "revision": recording.revision or None,
        "time": _last_time(recording),
        "counts": {
            "objects": sum(map(len, recording.objects.values())),
            "notHealthy": sum(1 + len(cause.others) for cause in causes),
            "changes": len(recording.changes),
            "requests": len(recording.requests),
            "events": len(recording.events),
        },
        "problems": problems,
        "refused": [summarizer.refusal(each) for each in refused[: limits.refusals]],
        "authors": [summarizer.author(each) for each in shown_authors],
        "warnings": warnings[: limits.warnings],
        "faults": [
            {"name": meta.name(fault)} | _small(limits, "spec", fault["spec"])
            for fault in recording.faults[: limits.refusals]
        ],
        "marks": [
            {"name": meta.name(mark), "revision": mark["spec"].get("revision")}
            for mark in recording.marks[: limits.refusals]
        ],
        "notes": [
            *_shortened([*recording.notes[: limits.notes]], limits.text),
            *_omitted(
                more,
                (of_users, limits.causes, "causes that users wrote"),
                (of_others, limits.problems, "causes of objects that are not healthy"),
                (refused, limits.refusals, "refused requests"),
                (authors, len(shown_authors), "authors"),
                (warnings, limits.warnings, "warnings"),
                (recording.faults, limits.refusals, "faults"),
                (recording.marks, limits.refusals, "marks"),
                (recording.notes, limits.notes, "notes"),
            ),
        ],
    }
    return {
        name: value if name == "notes" else _shortened(value, limits.text)
        for name, value in tree.items()
        if value not in ("", [], None)
    }


def _small(limits: Limits, name: str, value: ReadOnlyTree) -> Tree:
    """Return a field, or none if it is too large: a part of it would say something else."""
    return {name: value} if len(orjson.dumps(value)) <= limits.text else {}


def _omitted(more: str, *parts: tuple[Sequence[object], int, str]) -> Iterator[str]:
    for items, limit, name in parts:
        if len(items) > limit:
            yield f"{len(items) - limit} more {name} are left out{more}."


def _with_named(
    authors: Sequence[WritesOfUser], limit: int, problems: Sequence[ReadOnlyTree]
) -> Sequence[WritesOfUser]:
    """Return the first authors, and those of the others whose writes a problem names."""
    named = {
        write["user"]
        for problem in problems
        for origin in problem.get("origins", ())
        for write in origin.get("writes", ())
        if "user" in write  # not if only the managers of fields are known
    }
    return [*authors[:limit], *(each for each in authors[limit:] if each.user in named)]


def _last_time(recording: Recording) -> str:
    """Return the newest time of the data: that of the cluster, whose clock may be another one."""
    times = [change.get("time", "") for change in recording.changes[-1:]]
    times += [request["spec"].get("time", "") for request in recording.requests[-1:]]
    return max(times, default="")


class _Summarizer:
    def __init__(self, recording: Recording, limits: Limits, writes: Writes) -> None:
        self._recording, self._limits, self.writes = recording, limits, writes
        self._by_uid = {
            meta.uid(tree): (ObjectIdentity.of(resource, tree), tree)
            for resource, trees in recording.objects.items()
            for tree in trees
        }
        self._keys = {
            (meta.kind(tree), meta.namespace(tree), meta.name(tree)): key_of(identity)
            for identity, tree in self._by_uid.values()
        }

    def problem(self, cause: Cause) -> Tree:
        """Return why objects are not healthy: the fields that the cause names with their last writers, and whom it concerns."""
        status, limits = cause.status, self._limits
        subject = status["object"]
        uid = subject.get("uid", "")
        chain = [*self._owners(uid)]
        identity = chain[0][0] if chain else ObjectIdentity("", subject.get("namespace", ""), subject["name"])
        problem: Tree = {
            "object": {name: subject.get(name, "") for name in ("kind", "namespace", "name")},
            "key": key_of(identity),
            "state": status["state"],
            "cause": status["cause"],
            "origins": [*map(self._origin, cause.origins)],
            "affected": [self._affected(*each) for each in cause.others[: limits.affected]],
            "affectedCount": len(cause.others),
            "evidence": [*status.get("evidence", ())][: limits.evidence],
            "nodes": [*status.get("nodes", ())][: limits.nodes],
            "remedies": [*status.get("remedies", ())][: limits.evidence],
            "lastWrites": self.writes.of_objects(
                [each for each, _ in chain], limits.writes, limits.component_writes
            ),
            "logs": [*self._logs(identity)],
            "commands": [*_commands(chain[0][1] if chain else None, uid)][: limits.commands],
        }
        return {name: value for name, value in problem.items() if value not in ([], 0, "")}

    def _origin(self, origin: ReadOnlyTree) -> Tree:
        """Return a field that a cause names, with its last writes: those of users are what is looked for."""
        named, limits = origin["object"], self._limits
        place = (named["kind"], named.get("namespace", ""), named["name"])
        tree = {**origin, **({"key": self._keys[place]} if place in self._keys else {})}
        if len(origin.get("writes", ())) > limits.origin_writes:
            tree["writes"] = [*(users_writes(origin) or origin["writes"])][: limits.origin_writes]
        return tree if limits.commands else {name: tree[name] for name in tree if name != _COMMAND}

    def _affected(self, kind: str, namespace: str, name: str) -> Tree:
        tree = {
            "kind": kind,
            "namespace": namespace,
            "name": name,
            "key": self._keys.get((kind, namespace, name), ""),
        }
        return {name: value for name, value in tree.items() if value}

    def _owners(self, uid: str) -> Iterator[tuple[ObjectIdentity, ReadOnlyTree]]:
        """Yield an object and its owners."""
        for _ in range(MAX_DEPTH):
            if uid not in self._by_uid:
                return
            identity, tree = self._by_uid[uid]
            yield identity, tree
            owner = meta.controller_of(tree)
            uid = "" if owner is None else owner["uid"]

    def _logs(self, identity: ObjectIdentity) -> Iterator[Tree]:
        if identity.resource != "pods" or not self._limits.log_lines:
            return
        for log in self._recording.logs:
            if (log.namespace, log.pod) == (identity.namespace, identity.name) and log.lines:
                yield {**log_head(log), "lines": [*log.lines[-self._limits.log_lines :]]}

    def refusal(self, refusal: Refusal) -> Tree:
        spec, status = refusal.request["spec"], refusal.request["status"]
        explained: Mapping[str, Any] = self._recording.refusals.get(refusal.name, {})
        tree: Tree = {
            "time": spec["time"],
            "user": spec.get("user", ""),
            "agent": spec.get("agent", ""),
            "verb": spec.get("verb", "-"),
            "uri": spec.get("uri", ""),
            "code": status.get("code", ""),
            "message": status.get("message", ""),
            "fault": status.get("fault", ""),
            "count": refusal.count,
            "cause": explained.get("cause", ""),
            "remedies": [*explained.get("remedies", ())][: self._limits.evidence],
            "command": command("mockube", "why", f"request/{refusal.name}"),
        }
        return {name: value for name, value in tree.items() if value not in ("", [])}

    def author(self, author: WritesOfUser) -> Tree:
        return {
            "author": str(author),
            "user": author.user,
            "writes": author.count,
            "last": self.writes.of_user(
                author.user,
                self._limits.component_writes
                if is_component_author(author.user)
                else self._limits.user_writes,
            ),
        }


def log_head(log: ContainerLog) -> Tree:
    return {
        "pod": log.pod,
        "namespace": log.namespace,
        "container": log.container,
        "previous": log.is_previous,
    }


def _commands(tree: ReadOnlyTree | None, uid: str) -> Iterator[str]:
    if tree is None or not uid:
        return
    yield why_object(tree)
    yield command(
        "mockube", "log", f"{kind_argument(tree)}/{meta.name(tree)}", *namespace_flags(meta.namespace(tree))
    )


def _other_warnings(recording: Recording) -> Iterator[Tree]:
    """Yield the warnings about what is not explained, the newest first."""
    explained = {_place(each["object"]) for each in recording.explanations}
    explained |= {
        ("", "Pod", each.namespace, each.name)  # those of others are not alike
        for others in recording.similar.values()
        for each in others
    }
    for event in reversed(recording.events):
        subject = event.get("involvedObject") or {}
        if event.get("type") != "Warning" or _place(subject) in explained:
            continue
        yield {
            "time": event.get("lastTimestamp") or event.get("eventTime") or "",
            "apiVersion": subject.get("apiVersion", ""),
            "kind": subject.get("kind", ""),
            "namespace": subject.get("namespace", ""),
            "name": subject.get("name", ""),
            "reason": event.get("reason", ""),
            "message": event.get("message", ""),
            "count": event.get("count") or 1,
        }


def _place(subject: ReadOnlyTree) -> tuple[str, str, str, str]:
    """Return the group, kind, namespace and name of an object that is named."""
    group = subject.get("apiVersion", "").rpartition("/")[0]
    return group, subject.get("kind", ""), subject.get("namespace", ""), subject.get("name", "")


def _shortened(value: Any, limit: int) -> Any:
    """Return a tree with shorter texts, but for names, and without commands that are long: a part of one would do something else."""
    if isinstance(value, str):
        return value if len(value) <= limit else f"{value[:limit]} …"
    if isinstance(value, Mapping):
        return {
            name: [each for each in member if len(each) <= limit]
            if name == _COMMANDS
            else _shortened(member, max(limit, MAX_NAME) if name in _WHOLE else limit)
            for name, member in value.items()
            if name != _COMMAND or len(member) <= limit
        }
    return [_shortened(member, limit) for member in value] if isinstance(value, list | tuple) else value
