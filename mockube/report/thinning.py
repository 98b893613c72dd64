"""What is left out of a page that would be too large, step by step, and the notes that say so."""

import operator
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, TypeAlias

import orjson

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree, Tree

Step: TypeAlias = Callable[[Tree], Tree]

KEPT_BODIES: Final = 500
KEPT_REQUESTS: Final = 2_000
KEPT_PATCHES: Final = 20_000
_READS: Final = ("get", "list", "watch")
_ERRORS_FROM: Final = 400
_LISTS: Final = ("changes", "requests", "events")
_OMITTED: Final = "it is left out of the report"
_ROUNDS: Final = 16
"""How often all is halved: less than one of 60,000 is left then."""


def thinned(data: Tree, size_of: Callable[[Tree], int], max_bytes: int) -> tuple[Tree, Sequence[str]]:
    """Return data that are small enough, and notes of what is left out. The last data that are measured, which takes long, are these."""
    thin, size = data, size_of(data)
    for step in STEPS:
        if size <= max_bytes:
            break
        before, thin = thin, step(thin)
        size = size if thin is before else size_of(thin)
    return thin, [*_notes(data, thin)]


def _notes(data: Tree, thin: Tree) -> Iterator[str]:
    for name in _LISTS:
        if count := len(data[name]) - len(thin[name]):
            yield f"{count} {name} are left out, to keep the file small: the oldest, reads first."
    if count := sum(each["spec"].get("bodyOmitted") == _OMITTED for each in thin["requests"]):
        yield f"The bodies of {count} requests are left out, to keep the file small: the oldest."
    if count := sum(change.get("patchOmitted") == _OMITTED for change in thin["changes"]):
        yield f"What {count} changes changed is left out, to keep the file small: the oldest."
    for resource, trees in data["objects"].items():
        if count := len(trees) - len(thin["objects"][resource]):
            yield f"{count} objects of {resource} are left out, to keep the file small."


def _is_named(data: Tree) -> Callable[[str, ReadOnlyTree], bool]:
    """Return whether a change, or an object of a resource, is one that a problem of the summary is about, or its cause: these stay."""
    problems = data["summary"].get("problems", ())
    origins = [origin for problem in problems for origin in problem.get("origins", ())]
    writes = [
        write
        for named in (*problems, *origins)
        for write in (*named.get("lastWrites", ()), *named.get("writes", ()))
    ]
    revisions = {write["revision"] for write in writes}
    keys = {each.get("key", "") for each in (*problems, *origins)}

    def is_named(name: str, item: ReadOnlyTree) -> bool:
        if name in _LISTS:
            return name == "changes" and item["revision"] in revisions
        return "|".join((name, meta.namespace(item), meta.name(item))) in keys

    return is_named


def _with(data: Tree, name: str, items: Sequence[ReadOnlyTree]) -> Tree:
    """Return data with other items; the same data if none is another one."""
    before = data[name]
    is_same = len(items) == len(before) and all(map(operator.is_, items, before))
    return data if is_same else {**data, name: items}


def _without_old_bodies(data: Tree) -> Tree:
    old, new = data["requests"][:-KEPT_BODIES], data["requests"][-KEPT_BODIES:]
    return _with(data, "requests", [*map(_without_body, old), *new])


def _without_body(request: ReadOnlyTree) -> ReadOnlyTree:
    spec = request["spec"]
    if "body" not in spec:
        return request
    rest = {name: value for name, value in spec.items() if name != "body"}
    return {**request, "spec": {**rest, "bodyOmitted": _OMITTED}}


def _without_old_reads(data: Tree) -> Tree:
    old, new = data["requests"][:-KEPT_REQUESTS], data["requests"][-KEPT_REQUESTS:]
    return _with(data, "requests", [*(each for each in old if not _is_usual_read(each)), *new])


def _is_usual_read(request: ReadOnlyTree) -> bool:
    status = request.get("status") or {}
    is_usual = (status.get("code") or 0) < _ERRORS_FROM and not status.get("fault")
    return is_usual and request["spec"].get("verb") in _READS


def _without_old_patches(count: int, data: Tree) -> Tree:
    old, new, is_named = data["changes"][:-count], data["changes"][-count:], _is_named(data)
    short = (each if is_named("changes", each) else _without_patch(each) for each in old)
    return _with(data, "changes", [*short, *new])


def _without_patch(change: ReadOnlyTree) -> ReadOnlyTree:
    if "patch" not in change:
        return change
    return {**{name: value for name, value in change.items() if name != "patch"}, "patchOmitted": _OMITTED}


def _without_older_half(name: str, data: Tree) -> Tree:
    middle, is_named = (len(data[name]) + 1) // 2, _is_named(data)
    return _with(
        data, name, [*(each for each in data[name][:middle] if is_named(name, each)), *data[name][middle:]]
    )


def _without_half_of_largest_resource(data: Tree) -> Tree:
    objects = data["objects"]
    sizes = {resource: len(orjson.dumps(trees)) for resource, trees in objects.items() if trees}
    if not sizes:
        return data
    largest = max(sizes, key=lambda resource: (sizes[resource], resource))
    middle, is_named = len(objects[largest]) // 2, _is_named(data)
    named = (each for each in objects[largest][middle:] if is_named(largest, each))
    return {**data, "objects": {**objects, largest: [*objects[largest][:middle], *named]}}


_HALVES: Final[Sequence[Step]] = [
    *(partial(_without_older_half, name) for name in _LISTS),
    _without_half_of_largest_resource,
]
STEPS: Final[Sequence[Step]] = [
    _without_old_bodies,
    _without_old_reads,
    partial(_without_old_patches, KEPT_PATCHES),
    partial(_without_old_patches, KEPT_PATCHES // 10),
    *(half for _ in range(_ROUNDS) for half in _HALVES),
]
"""What is left out, one after the other: what is missed least goes first."""
