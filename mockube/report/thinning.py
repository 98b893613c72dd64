"""What is left out of a page that would be too large, step by step, and the note that says so."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from mockube.apimachinery.tree import ReadOnlyTree, Tree

Step: TypeAlias = Callable[[Tree], tuple[Tree, str]]

KEPT_REQUESTS: Final = 2_000
KEPT_PATCHES: Final = 20_000
_READS: Final = ("get", "list", "watch")
_ERRORS_FROM: Final = 400
_BIG_LISTS: Final = ("changes", "requests", "events")


def _without_old_reads(data: Tree) -> tuple[Tree, str]:
    old, new = data["requests"][:-KEPT_REQUESTS], data["requests"][-KEPT_REQUESTS:]
    kept = [each for each in old if not _is_usual_read(each)]
    note = f"{len(old) - len(kept)} requests that read something are left out: the older ones, of those that succeeded."
    return {**data, "requests": [*kept, *new]}, note if len(kept) < len(old) else ""


def _is_usual_read(request: ReadOnlyTree) -> bool:
    status = request.get("status") or {}
    is_usual = (status.get("code") or 0) < _ERRORS_FROM and not status.get("fault")
    return is_usual and request["spec"].get("verb") in _READS


def _without_old_patches(count: int) -> Step:
    def leave_out(data: Tree) -> tuple[Tree, str]:
        changes = data["changes"]
        old, new = (changes[:-count], changes[-count:]) if count else (changes, [])
        with_patch = sum(1 for change in old if "patch" in change)
        kept = [
            {**change, "patchOmitted": "it is left out of the report"}
            if change.pop("patch", None)
            else change
            for change in map(dict, old)
        ]
        note = f"What the {with_patch} oldest changes changed is left out; who made them is not."
        return {**data, "changes": [*kept, *new]}, note if with_patch else ""

    return leave_out


def _half_of(name: str) -> Step:
    def leave_out(data: Tree) -> tuple[Tree, str]:
        items: Sequence[object] = data[name]
        dropped = len(items) // 2
        return {
            **data,
            name: items[dropped:],
        }, f"{dropped} {name}, the oldest, are left out." if dropped else ""

    return leave_out


def _without_objects_of_many(data: Tree) -> tuple[Tree, str]:
    objects = data["objects"]
    largest = max(objects, key=lambda resource: (len(objects[resource]), resource))
    kept = objects[largest][: len(objects[largest]) // 2]
    note = f"{len(objects[largest]) - len(kept)} objects of {largest} are left out."
    return {**data, "objects": {**objects, largest: kept}}, note


_HALVES: Final[Sequence[Step]] = (*map(_half_of, _BIG_LISTS), _without_objects_of_many)
STEPS: Final[Sequence[Step]] = (
    _without_old_reads,
    _without_old_patches(KEPT_PATCHES),
    _without_old_patches(KEPT_PATCHES // 10),
    *_HALVES * 8,
)
"""What is left out, one after the other: what is missed least goes first."""


def thinned(data: Tree, size_of: Callable[[Tree], int], max_bytes: int) -> tuple[Tree, Sequence[str]]:
    """Return data that are small enough, and notes of what is left out."""
    notes: list[str] = []
    for step in STEPS:
        if size_of(data) <= max_bytes:
            break
        data, note = step(data)
        notes += [note] if note else []
    return data, notes
