"""Judgement 5: is an object of the operator that somebody deletes or changes repaired?"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.operators.end_state import kind_of

from .context import Context, NotApplicable, about, target
from .findings import Judgement, Level
from .object_kinds import is_secret
from .reference import current_objects, lines_of
from .trial_cluster import TrialCluster

_REPAIR_SECONDS = 30.0
_CONTENTS = ("spec", "data", "stringData", "rules", "subjects", "webhooks", "labels")
_MAX_OBJECTS = 12
_TRIES = 6


def judge(context: Context, judgement: Judgement) -> None:
    seconds = min(_REPAIR_SECONDS, context.setup.timeout)
    with context.running() as trial:
        objects = _own_objects(trial)
        if not objects:
            raise NotApplicable("the operator created no objects besides the custom resource")
        judgement.figures["objects"] = str(len(objects))
        judgement.did.append(
            f"Deleted at once what the operator had created ({', '.join(map(about, objects))}), and waited {seconds:g} s for the undisturbed state."
        )
        judgement.by_hand = context.by_hand(*(f"kubectl delete {target(each)}" for each in objects))
        _delete(context, judgement, trial, objects, seconds)
    with context.running() as trial:
        _change(context, judgement, trial, seconds)


def _own_objects(trial: TrialCluster) -> Sequence[Tree]:
    """Return objects that the operator has created and not its custom resource: one of each kind first."""
    group = trial.setup.sample.group
    found = [
        tree
        for tree in current_objects(trial, created_only=True)
        if meta.api_version(tree).rpartition("/")[0] != group and kind_of(tree) != "Namespace"
    ]
    firsts = [*{kind_of(tree): tree for tree in reversed(found)}.values()][::-1]
    others = [tree for tree in found if tree not in firsts]
    return [*firsts, *others][:_MAX_OBJECTS]


def _delete(
    context: Context,
    judgement: Judgement,
    trial: TrialCluster,
    objects: Sequence[ReadOnlyTree],
    seconds: float,
) -> None:
    trial.cluster.delete(objects, ignore_not_found=True)
    took = context.wait_for_state(trial, seconds)
    if took is not None:
        judgement.figures["deleted ones repaired in"] = f"{took:.1f} s"
        return
    differences = context.expected.differences(trial)
    missing = {each.role for each in differences if each.type == "missing"}
    for tree in objects:
        if context.expected.role_of(tree) in missing:
            judgement.add(
                "deletion-not-repaired",
                Level.ERROR,
                context.subject(tree),
                f"was deleted, and not created again within {seconds:g} s",
                by_hand=[f"kubectl delete {target(tree)}"],
            )
    others = [each for each in differences if each.role not in missing]
    if others:
        judgement.add(
            "deletion-not-repaired",
            Level.WARNING,
            "Other objects",
            f"differ {seconds:g} s after objects of the operator were deleted",
            details=[*lines_of(others)],
        )


def _change(context: Context, judgement: Judgement, trial: TrialCluster, seconds: float) -> None:
    changed = [(tree, path) for tree in _own_objects(trial) if (path := _change_one(trial, tree))]
    judgement.figures["objects changed"] = str(len(changed))
    if not changed:
        judgement.did.append("The server refuses each change of their fields that was tried.")
        return
    judgement.did.append(
        f"Changed in each of its objects one field that it had set ({', '.join(f'{about(tree)} {path}' for tree, path in changed)}), and waited {seconds:g} s."
    )
    took = context.wait_for_state(trial, seconds)
    if took is not None:
        judgement.figures["changed ones repaired in"] = f"{took:.1f} s"
        return
    differing = {each.role: each for each in context.expected.differences(trial)}
    for tree, path in changed:
        found = differing.get(context.expected.role_of(tree))
        if found is not None:
            judgement.add(
                "change-not-repaired",
                Level.WARNING,
                f"{context.subject(tree)}, {path}",
                f"was changed, and not set again within {seconds:g} s",
                details=[str(found)],
                by_hand=[f"kubectl edit {target(tree)}   # change {path}"],
            )


def _change_one(trial: TrialCluster, tree: ReadOnlyTree) -> str:
    """Change one field of an object, and return its path; "" if the server refuses all that were tried."""
    for path, value in [*changed_fields(tree)][:_TRIES]:
        try:
            before = trial.cluster.get(tree)
            patched = trial.cluster.patch(tree, [{"op": "replace", "path": _pointer(path), "value": value}])
        except ApiError:
            continue
        if meta.resource_version(patched) != meta.resource_version(before):
            return ".".join(map(str, path))
    return ""


def _pointer(path: Sequence[str | int]) -> str:
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


def changed_fields(tree: ReadOnlyTree) -> Iterator[tuple[Sequence[str | int], Any]]:
    """Yield fields of an object whose values the operator sets, each with another value of the same type."""
    metadata = {"labels": (tree.get("metadata") or {}).get("labels") or {}}
    for name in _CONTENTS:
        prefix: Sequence[str | int] = ("metadata", name) if name == "labels" else (name,)
        value = metadata.get(name) if name == "labels" else tree.get(name)
        if value:
            yield from _leaves(value, prefix, is_encoded=is_secret(tree))


def _leaves(
    value: Any, path: Sequence[str | int], *, is_encoded: bool
) -> Iterator[tuple[Sequence[str | int], Any]]:
    if isinstance(value, Mapping):
        for name in sorted(value, key=_preference):
            yield from _leaves(value[name], (*path, name), is_encoded=is_encoded)
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _leaves(member, (*path, index), is_encoded=is_encoded)
    elif isinstance(value, bool):
        yield path, not value
    elif isinstance(value, int):
        yield path, value + 1
    elif isinstance(value, str):
        yield path, "ZHJpZnQ=" if is_encoded else f"{value}-drift"


def _preference(name: str) -> tuple[int, str]:
    """Return the order of fields: those first that operators set themselves, and no defaults of the server."""
    first, last = ("template", "image", "schedule", "ports", "port"), ("replicas",)
    return (first.index(name) if name in first else len(first) + (name in last), name)
