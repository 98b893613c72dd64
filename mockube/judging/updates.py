"""Judgement 7: does each field of the custom resource have an effect when it changes, and none when it is changed back?"""

from collections.abc import Sequence
from typing import Any

import orjson

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.objects.client import PatchType
from mockube.operators.end_state import Difference, EndState, differences, end_state

from .context import Context, NotApplicable
from .field_values import FieldUpdate, field_changes, schema_of
from .findings import Judgement, Level
from .reference import lines_of, written_objects
from .trial_cluster import TrialCluster

_SETTLE_SECONDS = 30.0
_MAKING = ("create", "delete", "deletecollection")
"""What has an effect even if nothing of it is left. An apply or an update may change nothing."""


def judge(context: Context, judgement: Judgement) -> None:
    setup = context.setup
    version = str(setup.sample.resource["apiVersion"]).rpartition("/")[2]
    changes = field_changes(
        schema_of(setup.sample.definition, version), setup.sample.resource.get("spec") or {}
    )
    if not changes:
        raise NotApplicable(f"the schema of {setup.sample.full_name} {version} has no fields in its spec")
    chosen = changes[: setup.fields]
    judgement.by_hand = context.by_hand(
        _command(context, chosen[0].patch()),
        f"kubectl get {context.resource} -o yaml",
    )
    judgement.did.append(
        f"Changed {len(chosen)} of {len(changes)} fields of the spec to another value that the schema allows (--fields), one after another,"
        " waited until the cluster was quiet, changed each back, and compared with the undisturbed state."
    )
    refused: list[str] = []
    with context.running() as trial:
        for change in chosen:
            _try(context, judgement, trial, change, refused)
    judgement.figures |= {
        "fields": str(len(changes)),
        "changed": str(len(chosen) - len(refused)),
        "refused": str(len(refused)),
    }
    if refused:
        judgement.did.append(f"Refused by the server, and not judged: {', '.join(refused)}.")


def _try(
    context: Context, judgement: Judgement, trial: TrialCluster, change: FieldUpdate, refused: list[str]
) -> None:
    before, parts = end_state(written_objects(trial), context.expected.varying), _parts(context, trial)
    exits, since = len(trial.exits), context.setup.clock.now()
    spec = trial.resource().get("spec") or {}
    if not _patch(trial, change.patch()):
        refused.append(change.name)
        return
    reaction = context.setup.reaction_seconds
    trial.wait_for(lambda: bool(trial.writes(since)) or len(trial.exits) > exits, reaction)
    trial.settle(_SETTLE_SECONDS)
    has_made = any(each.verb in _MAKING for each in trial.writes(since))
    has_effect = has_made or bool(differences(parts, _parts(context, trial), context.expected.varying))
    hand = [_command(context, change.patch())]
    if len(trial.exits) > exits:
        judgement.add(
            "update-ends-operator",
            Level.ERROR,
            change.name,
            f"was set to {change.after!r}, and the operator ended with the code {trial.exits[-1].code}",
            details=trial.exits[-1].log.splitlines(),
            by_hand=hand,
        )
    elif not has_effect:
        judgement.add(
            "update-without-effect",
            Level.NOTE,
            change.name,
            f"was set to {change.after!r}, and the operator changed nothing in {reaction:g} s",
            by_hand=hand,
        )
    if not _patch(trial, [{"op": "replace", "path": "/spec", "value": spec}]):
        judgement.did.append(f"{change.name} could not be changed back.")
        return
    seconds = trial.wait_for(lambda: not _differences(context, trial, before), context.setup.timeout)
    # Else the next field would be changed while nobody reacts.
    trial.wait_for(trial.is_running, _SETTLE_SECONDS)
    if seconds is None:
        judgement.add(
            "update-not-undone",
            Level.ERROR,
            change.name,
            f"was set to {change.after!r} and back, and the state is another one than before, after {context.setup.timeout:g} s",
            details=[*lines_of(_differences(context, trial, before))],
            by_hand=[*hand, f"kubectl replace -f {context.setup.sample.names[0]}"],
        )
    trial.settle(_SETTLE_SECONDS)


def _parts(context: Context, trial: TrialCluster) -> EndState:
    """Return the operator's part of the state: without the spec of the resource, which its user changes."""
    kind, name = str(context.setup.sample.resource["kind"]), meta.name(context.setup.sample.resource)
    objects = [
        {**tree, "spec": None} if (meta.kind(tree), meta.name(tree)) == (kind, name) else tree
        for tree in written_objects(trial)
    ]
    return end_state(objects, context.expected.varying)


def _differences(context: Context, trial: TrialCluster, before: EndState) -> Sequence[Difference]:
    varying = context.expected.varying
    return differences(before, end_state(written_objects(trial), varying), varying)


def _patch(trial: TrialCluster, patch: ReadOnlyTree | list[Any]) -> bool:
    kind, name = trial.resource_target
    patch_type: PatchType = "json" if isinstance(patch, list) else "merge"
    try:
        trial.cluster.patch(kind, name, patch, type=patch_type, namespace=trial.resource_namespace)
    except ApiError:
        return False
    return True


def _command(context: Context, patch: ReadOnlyTree) -> str:
    return f"kubectl patch {context.resource} --type=merge -p '{orjson.dumps(patch).decode()}'"
