"""Judgement 6: does the deletion of the custom resource leave nothing, and end, also with its namespace?"""

import asyncio
from collections.abc import Callable, Iterator, Sequence

from mockube.apimachinery import meta
from mockube.apimachinery.status import AlreadyExists, ApiError, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client import kubeconfig
from mockube.client.resources import Key
from mockube.command_client import open_client
from mockube.objects.resource_names import ResourceNames
from mockube.operators.end_state import identity_of, kind_of

from .context import Context, about, target
from .findings import Judgement, Level
from .object_kinds import often_stays
from .reference import current_objects, lines_of, note_own_objects
from .trial_cluster import TrialCluster

_NAMESPACE = "to-be-deleted"


def judge(context: Context, judgement: Judgement) -> None:
    judgement.by_hand = context.by_hand(f"kubectl delete {context.resource}", "kubectl get all -A")
    with context.running() as trial:
        _check_owners(context, judgement, trial)
        _delete(context, judgement, trial)
        if not judgement.findings:
            _create_again(context, judgement, trial)
    with context.running() as trial:
        _delete_while_down(context, judgement, trial)
    with context.running() as trial:
        delete_without_orphans(context, judgement, trial, _delete_as_orphans)
    if context.setup.sample.is_namespaced:
        with context.trial() as trial:
            _delete_namespace(context, judgement, trial)


def _check_owners(context: Context, judgement: Judgement, trial: TrialCluster) -> None:
    """Find owner references that the garbage collector of a real cluster treats as ones to nothing."""
    for tree in current_objects(trial, created_only=True):
        for text in invalid_owners(tree, trial.resource()):
            judgement.add(
                "owner-invalid",
                Level.ERROR,
                context.subject(tree),
                text,
                by_hand=[f"kubectl get {target(tree)} -o jsonpath='{{.metadata.ownerReferences}}'"],
            )


def invalid_owners(tree: ReadOnlyTree, resource: ReadOnlyTree) -> Iterator[str]:
    """Yield what is wrong with the owner references of an object to the custom resource."""
    for reference in meta.owner_references(tree):
        if kind_of(reference) != kind_of(resource):
            continue
        place, own = meta.namespace(tree), meta.namespace(resource)
        if own and place != own:
            yield (
                f"is {'in the namespace ' + place if place else 'cluster-scoped'}, and its owner in the namespace {own}:"
                " the garbage collector deletes it, as an owner must be in the same namespace or cluster-scoped"
            )
        elif reference.get("uid") != meta.uid(resource) and reference.get("name") == meta.name(resource):
            yield "has an owner with the name of the custom resource and another uid: the garbage collector deletes it"


def _delete(context: Context, judgement: Judgement, trial: TrialCluster) -> None:
    before = {*map(identity_of, _created(trial))}
    judgement.figures["finalizers"] = (
        ", ".join(trial.resource()["metadata"].get("finalizers") or ()) or "none"
    )
    took = _delete_and_wait(context, judgement, trial, "")
    judgement.did.append(
        "Deleted the custom resource, and waited until it and all that the operator had created were gone."
    )
    if took is None:
        return
    judgement.figures["gone after"] = f"{took:.1f} s"
    for tree, level in _left_over(trial, _foreign_objects):
        is_new = identity_of(tree) not in before
        origin = "was created during the deletion, and" if is_new else "has no owner that is gone, and"
        judgement.add(
            "left-over",
            Level.WARNING if is_new else level,
            context.subject(tree),
            f"{origin} stays when the custom resource is gone",
            by_hand=[f"kubectl get {target(tree)} -o yaml"],
        )


def _foreign_objects(trial: TrialCluster) -> Sequence[ReadOnlyTree]:
    """Return what the operator has created and what exists, without its own custom resources."""
    group = trial.setup.sample.group
    return [tree for tree in _created(trial) if meta.api_version(tree).rpartition("/")[0] != group]


def _created(trial: TrialCluster) -> Sequence[ReadOnlyTree]:
    return current_objects(trial, created_only=True)


def _left_over(
    trial: TrialCluster, find: Callable[[TrialCluster], Sequence[ReadOnlyTree]]
) -> Iterator[tuple[ReadOnlyTree, Level]]:
    """Wait for the operator and the garbage collector, and yield what stays, with the level of a finding of it."""
    trial.wait_for(lambda: not find(trial), trial.setup.timeout / 3)
    for tree in find(trial):
        yield tree, Level.WARNING if often_stays(tree) else Level.ERROR


def _delete_and_wait(context: Context, judgement: Judgement, trial: TrialCluster, when: str) -> float | None:
    kind, name = trial.resource_target
    trial.cluster.delete(kind, name, namespace=trial.resource_namespace)
    took = trial.wait_for(trial.is_gone, context.setup.timeout)
    if took is None:
        finalizers = trial.resource()["metadata"].get("finalizers") or ()
        judgement.add(
            "deletion-hangs",
            Level.ERROR,
            f"{about(context.setup.sample.resource)}{when}",
            f"still exists {context.setup.timeout:g} s after its deletion, because of the finalizers {', '.join(finalizers)}",
            details=trial.instances[0].last_lines().splitlines()[-3:],
        )
    return took


def _create_again(context: Context, judgement: Judgement, trial: TrialCluster) -> None:
    """Create the custom resource again under the same name, immediately after it is gone."""
    try:
        trial.create_resource()
    except AlreadyExists:
        return
    judgement.did.append("Created it again under the same name, and waited for the undisturbed state.")
    if context.wait_for_state(trial) is None:
        judgement.add(
            "not-created-again",
            Level.ERROR,
            about(context.setup.sample.resource),
            f"was deleted and created again, and the operator did not reach the undisturbed state in {context.setup.timeout:g} s",
            details=[*lines_of(context.expected.differences(trial))],
        )


def _delete_while_down(context: Context, judgement: Judgement, trial: TrialCluster) -> None:
    (instance,) = trial.instances
    instance.stop()
    kind, name = trial.resource_target
    trial.cluster.delete(kind, name, namespace=trial.resource_namespace)
    trial.pause(1.0)
    has_waited = not trial.is_gone()
    instance.restart()
    judgement.did.append(
        "Deleted the custom resource in another cluster while the operator did not run, and started it again."
    )
    judgement.figures["waits for the operator"] = "yes" if has_waited else "no"
    if trial.wait_for(trial.is_gone, context.setup.timeout) is None:
        judgement.add(
            "deletion-hangs",
            Level.ERROR,
            f"{about(context.setup.sample.resource)}, deleted while the operator did not run",
            f"still exists {context.setup.timeout:g} s after the operator was started",
            details=instance.last_lines().splitlines()[-3:],
        )
        return
    known = {(each.subject, each.rule) for each in judgement.findings}
    for tree, level in _left_over(trial, _foreign_objects):
        if (context.subject(tree), "left-over") not in known:
            judgement.add(
                "left-over",
                level,
                f"{context.subject(tree)}, deleted while the operator did not run",
                "stays when the custom resource is gone: without a finalizer or an owner nobody deletes it",
            )


def delete_without_orphans(
    context: Context, judgement: Judgement, trial: TrialCluster, delete: Callable[[TrialCluster], None]
) -> None:
    """Delete the custom resource alone, as `kubectl delete --cascade=orphan` does, and create it again."""
    before = [tree for tree in _foreign_objects(trial) if meta.owner_references(tree)]
    if not before:
        judgement.did.append("Its objects have no owner, so that none can be an orphan.")
        return
    delete(trial)
    judgement.did.append(
        "Deleted the custom resource with --cascade=orphan in another cluster, which leaves its objects without an owner, and created it again."
    )
    if trial.wait_for(trial.is_gone, context.setup.timeout) is None:
        return  # as with every other deletion, which has been reported
    trial.settle()
    remaining = {*map(identity_of, _foreign_objects(trial))} & {*map(identity_of, before)}
    judgement.figures["orphans kept"] = f"{len(remaining)} of {len(before)}"
    by_hand = [f"kubectl delete {context.resource} --cascade=orphan"]
    deleted = [context.subject(tree) for tree in before if identity_of(tree) not in remaining]
    if deleted:
        judgement.add(
            "orphan-deleted",
            Level.NOTE,
            ", ".join(deleted),
            "was deleted with the custom resource, although --cascade=orphan says that its objects stay",
            by_hand=by_hand,
        )
    trial.create_resource()
    if context.wait_for_state(trial) is None:
        judgement.add(
            "orphan-not-adopted",
            Level.WARNING,
            about(context.setup.sample.resource),
            f"was deleted with --cascade=orphan and created again, and the operator did not reach the undisturbed state in {context.setup.timeout:g} s",
            details=[*lines_of(context.expected.differences(trial))],
            by_hand=[*by_hand, f"kubectl apply -f {context.setup.sample.names[0]}"],
        )


def _delete_as_orphans(trial: TrialCluster) -> None:
    async def send() -> None:
        tree = trial.resource()
        async with open_client(kubeconfig.read(trial.cluster.kubeconfig), trial.setup.clock) as client:
            found = await ResourceNames(client).find_kind(meta.api_version(tree), meta.kind(tree))
            key = Key(meta.namespace(tree), meta.name(tree))
            await client.delete(found.resource, key, propagation="Orphan")

    asyncio.run(send())


def _delete_namespace(context: Context, judgement: Judgement, trial: TrialCluster) -> None:
    trial.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": _NAMESPACE}})
    trial.start_and_settle()
    note_own_objects(trial)
    begin = context.setup.clock.now()
    try:
        for tree in context.setup.sample.others:
            trial.cluster.apply(_moved(tree), namespace=_NAMESPACE)
        trial.cluster.create(_moved(context.setup.sample.resource), namespace=_NAMESPACE)
    except ApiError as error:
        judgement.did.append(
            f"Did not delete a namespace: the sample is refused in another one: {error.message}"
        )
        return
    trial.settle_after_write(begin)
    count, clock = len(trial.writes()), context.setup.clock
    since = clock.now()
    trial.cluster.delete("Namespace", _NAMESPACE)
    judgement.did.append(
        f"Created the custom resource in the namespace {_NAMESPACE}, and deleted the namespace."
    )
    took = trial.wait_for(lambda: not _exists(trial, _NAMESPACE), context.setup.timeout)
    refused = [each for each in trial.writes(since) if each.code == 403 and each.verb == "create"]
    judgement.figures["refused in the ending namespace"] = str(len(refused))
    if took is None:
        tree = trial.cluster.get("Namespace", _NAMESPACE)
        conditions = (tree.get("status") or {}).get("conditions") or ()
        judgement.add(
            "namespace-hangs",
            Level.ERROR,
            about(context.setup.sample.resource),
            f"keeps its namespace for more than {context.setup.timeout:g} s",
            details=[each["message"] for each in conditions if each.get("status") == "True"],
        )
        return
    judgement.figures["namespace gone after"] = f"{took:.1f} s"
    if count == 0:
        judgement.did.append("The operator did nothing in that namespace: it may watch one namespace only.")
    for tree, level in _left_over(trial, _created):
        judgement.add(
            "left-over",
            level,
            f"{context.subject(tree)}, after its namespace was deleted",
            "stays, although the custom resource was deleted with its namespace",
        )


def _moved(tree: ReadOnlyTree) -> ReadOnlyTree:
    metadata = {name: value for name, value in tree["metadata"].items() if name != "namespace"}
    return {**tree, "metadata": metadata}


def _exists(trial: TrialCluster, namespace: str) -> bool:
    try:
        trial.cluster.get("Namespace", namespace)
    except NotFound:
        return False
    return True
