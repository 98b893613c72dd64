"""Judgement 5: is an object of the operator that somebody deletes or changes repaired?"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.client import kubeconfig
from mockube.client.resources import Key
from mockube.command_client import open_client
from mockube.objects.errors import KindNotServed
from mockube.objects.resource_names import ResourceNames
from mockube.operators.end_state import kind_of
from mockube.operators.field_edits import NotEditable, edit_field

from .context import Context, NotApplicable, about, target
from .findings import Judgement, Level
from .reference import current_objects, lines_of
from .trial_cluster import TrialCluster

_REPAIR_SECONDS = 30.0
_MAX_OBJECTS = 12


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
    changed = asyncio.run(_change_each(trial, _own_objects(trial)))
    judgement.figures["objects changed"] = str(len(changed))
    if not changed:
        judgement.did.append("The server refuses each change of their fields that was tried.")
        return
    judgement.did.append(
        f"Changed in each of its objects one field that it had set ({', '.join(f'{about(tree)} {field}' for tree, field in changed)}), and waited {seconds:g} s."
    )
    took = context.wait_for_state(trial, seconds)
    if took is not None:
        judgement.figures["changed ones repaired in"] = f"{took:.1f} s"
        return
    differing = {each.role: each for each in context.expected.differences(trial)}
    for tree, field in changed:
        found = differing.get(context.expected.role_of(tree))
        if found is not None:
            judgement.add(
                "change-not-repaired",
                Level.WARNING,
                f"{context.subject(tree)}, {field}",
                f"was changed, and not set again within {seconds:g} s",
                details=[str(found)],
                by_hand=[f"kubectl edit {target(tree)}   # change {field}"],
            )


async def _change_each(trial: TrialCluster, trees: Sequence[Tree]) -> Sequence[tuple[Tree, str]]:
    """Change one field of each object, and return the objects that could be changed, with their fields."""
    changed: list[tuple[Tree, str]] = []
    async with open_client(kubeconfig.read(trial.cluster.kubeconfig), trial.setup.clock) as client:
        names = ResourceNames(client)
        for tree in trees:
            key = Key(meta.namespace(tree), meta.name(tree))
            with suppress(NotEditable, ApiError, KindNotServed):  # such as one that the operator has replaced
                found = await names.find_kind(meta.api_version(tree), meta.kind(tree))
                edit = await edit_field(client, found.resource, key)
                changed.append((tree, edit.field))
    return changed
