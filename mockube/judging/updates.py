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
_GRACE_SECONDS = 10.0
_ERRORS_FROM = 400
_SHOWN = 3
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
        changed = [_try(context, judgement, trial, change, refused) for change in chosen]
        for change, state in zip(chosen, changed, strict=True):
            if state is not None:  # one that has an effect is enough
                _change_while_down(context, judgement, trial, change, state)
                break
    judgement.figures |= {
        "fields": str(len(changes)),
        "changed": str(len(chosen) - len(refused)),
        "refused": str(len(refused)),
    }
    if refused:
        judgement.did.append(f"Refused by the server, and not judged: {', '.join(refused)}.")


def _try(
    context: Context, judgement: Judgement, trial: TrialCluster, change: FieldUpdate, refused: list[str]
) -> EndState | None:
    """Change a field, and change it back; return the state between if the change had an effect and was undone."""
    before, parts = end_state(written_objects(trial), context.expected.varying), _parts(context, trial)
    exits, since = len(trial.exits), context.setup.clock.now()
    spec = trial.resource().get("spec") or {}
    if not _patch(trial, change.patch()):
        refused.append(change.name)
        return None
    reaction = context.setup.reaction_seconds
    trial.wait_for(lambda: bool(trial.writes(since)) or len(trial.exits) > exits, reaction)
    trial.settle(_SETTLE_SECONDS)
    changed = end_state(written_objects(trial), context.expected.varying)
    writes = trial.writes(since)
    failed = [each for each in writes if each.code is None or each.code >= _ERRORS_FROM]
    has_made = any(each.verb in _MAKING for each in writes if each not in failed)
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
            Level.WARNING if failed else Level.NOTE,
            change.name,
            f"was set to {change.after!r}, and the operator changed nothing in {reaction:g} s",
            details=[str(each) for each in failed[-_SHOWN:]],
            by_hand=hand,
        )
    if not _patch(trial, [{"op": "replace", "path": "/spec", "value": spec}]):
        judgement.did.append(f"{change.name} could not be changed back.")
        return None
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
    is_usable = has_effect and seconds is not None and len(trial.exits) == exits
    return changed if is_usable else None


def _change_while_down(
    context: Context, judgement: Judgement, trial: TrialCluster, change: FieldUpdate, expected: EndState
) -> None:
    """Change a field while the operator is stopped: after its start, the state has to be the one with that change."""
    (instance,) = trial.instances
    instance.stop(_GRACE_SECONDS)
    _patch(trial, change.patch())
    instance.restart()
    judgement.did.append(f"Changed {change.name} while the operator was stopped, and started it again.")
    if trial.wait_for(lambda: not _differences(context, trial, expected), context.setup.timeout) is None:
        judgement.add(
            "update-lost-while-down",
            Level.ERROR,
            change.name,
            f"was set to {change.after!r} while the operator was stopped, and had no effect in {context.setup.timeout:g} s after its start",
            details=[*lines_of(_differences(context, trial, expected))],
            by_hand=["kill $!; wait $!", _command(context, change.patch()), context.start_command],
        )


def _parts(context: Context, trial: TrialCluster) -> EndState:
    """Return the operator's part of the state: without the spec of the resource, which its user changes, and its generation."""
    kind, name = str(context.setup.sample.resource["kind"]), meta.name(context.setup.sample.resource)
    objects = [
        {**tree, "spec": None, "metadata": {**tree["metadata"], "generation": None}}
        if (meta.kind(tree), meta.name(tree)) == (kind, name)
        else tree
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
