"""What each disturbance does to a run, after a step or while a write of the operator waits."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.status import ApiError, NotFound
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_MIRROR_POD
from mockube.client.component_helpers.disruption import OF_DELETED_NODE, disruption_status
from mockube.client.component_helpers.node_selectors import required_names
from mockube.client.kinds import PODS
from mockube.client.podview import FAILED
from mockube.client.resources import Key
from mockube.control_objects import advance_clock
from mockube.objects.errors import KindNotServed, WaitFailed
from mockube.objects.resource_names import ResourceNames
from mockube.operators.end_state import Identity
from mockube.operators.field_edits import MAX_TRIES, NotEditable, edit_field
from mockube.operators.writes import LEASES

from . import plans
from .edits import Edit, edits_of
from .old_lists import start_with_old_lists
from .operator_run import ObjectMissing, OperatorRun
from .plans import Disturbance
from .scenario import ObjectRef
from .webhooks import stop_webhooks

_GRACE_SECONDS: Final = 30.0
"""How long an operator may take to end after SIGTERM, as with a kubelet."""
_MOMENT_SECONDS: Final = 15.0
"""How long a disturbance may take until it takes place."""
_LAG_SHARE: Final = 0.6
"""How late events arrive, as a part of the time after which a run is quiet."""
_SKEW_SECONDS: Final = 3_600


async def apply(run: OperatorRun, disturbance: Disturbance) -> None:
    try:
        await ACTIONS[disturbance.action](run, disturbance)
    except ObjectMissing as error:
        run.trace.note(f"it does not take place: {error}")
        run.outcome.is_applied = False
    run.trace.touch()  # its Changes are still to come


async def restart(run: OperatorRun, _: Disturbance) -> None:
    async with run.replacing:
        await run.replace_operator(grace=_GRACE_SECONDS, text="the operator is stopped")
        await run.restart_now()


async def stop_for_a_step(run: OperatorRun, _: Disturbance) -> None:
    async with run.replacing:
        await run.replace_operator(grace=_GRACE_SECONDS, text="the operator is stopped")
        run.is_down = True


async def start_again(run: OperatorRun) -> None:
    run.trace.note("the operator starts")
    async with run.replacing:
        run.is_down = False
        await run.restart_now()


async def expire_token(run: OperatorRun, disturbance: Disturbance) -> None:
    """Refuse the next requests of the operator, as it has an expired token; its watches go on, as upstream."""
    run.armed[await refuse_token(run)] = disturbance


async def refuse_token(run: OperatorRun) -> str:
    return await run.add_fault({"match": run.match(), "refuse": {"status": 401}})


async def skew_clock(run: OperatorRun, _: Disturbance) -> None:
    """Let the clock of the cluster be ahead of that of the operator, which is the one of the machine."""
    await advance_clock(run.client, {"seconds": _SKEW_SECONDS})


async def evict_pod(run: OperatorRun, _: Disturbance) -> None:
    """Evict a pod of the run, as a drain of its node does."""
    objects = run.trace.objects
    written = {each.identity for each in run.trace.changes if each.resource == PODS.plural}
    # Nobody replaces a pod that has ended.
    pods = {each for each in written if each in objects and not _has_ended(objects[each])}
    if not pods:
        raise ObjectMissing("there is no pod that runs")
    namespace, name = min(pods)[1:]
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
    }
    try:
        await run.client.create(PODS, eviction, key=Key(namespace, name), subresource="eviction")
    except ApiError as error:  # such as that of a PodDisruptionBudget
        raise ObjectMissing(f"Pod {name}: {error.message}") from error
    run.trace.note(f"Pod {name} in {namespace} is evicted")


def _has_ended(pod: ReadOnlyTree) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


async def start_second(run: OperatorRun, _: Disturbance) -> None:
    async with run.replacing:
        is_running = await run.restart_now()
        run.operators.reverse()  # the first one stays the one that plans stop
    if not is_running:
        raise ObjectMissing(f"there is no second operator, {run.outcome.exits[-1]}")


async def lose_lease(run: OperatorRun, _: Disturbance) -> None:
    spec = {
        "match": run.match(verbs=["update", "patch"], resource=LEASES),
        "steal": {"holder": "another", "seconds": 1},
    }
    fault = await run.add_fault({**spec, "times": 1})
    with run.not_counted():
        is_lost = await run.wait_until(lambda: bool(run.trace.hits.get(fault)), _MOMENT_SECONDS)
    if not is_lost:
        await run.delete_fault(fault)
        raise ObjectMissing("the operator does not renew its Lease")


async def hold(run: OperatorRun, disturbance: Disturbance) -> None:
    fault = await run.add_fault({"match": run.watches_of(disturbance.resource), "hold": {}})
    await run.hide(fault, disturbance.resource)
    text = f"the events of {disturbance.resource} arrive now"
    run.hold_back(lambda: run.end_span(fault, text), disturbance.steps)


async def drop(run: OperatorRun, disturbance: Disturbance) -> None:
    resource = disturbance.resource
    fault = await run.add_fault({"match": run.watches_of(resource), "drop": {}})
    await run.hide(fault, resource)
    run.hold_back(lambda: expire(run, fault, resource))


async def expire(run: OperatorRun, fault: str, resource: str) -> None:
    """End the watches of a resource whose events a Fault has dropped: the operator lists again."""
    run.trace.note(f"the watch of {resource} ends with 410")
    await run.delete_fault(fault)
    refusal = {"match": run.watches_of(resource), "refuse": {"status": 410}}
    await run.delete_fault(await run.add_fault(refusal))


async def lag(run: OperatorRun, disturbance: Disturbance) -> None:
    """Let watches get each event late, until everything is quiet."""
    seconds = _LAG_SHARE * run.limits.settle  # later, and the run would be quiet before
    match = run.watches_of(disturbance.resource)
    fault = await run.add_fault({"match": match, "stale": {"seconds": seconds}})
    await run.hide(fault, disturbance.resource, seconds)
    run.trace.note(f"its events arrive {seconds:.2g} s late")
    run.hold_back(lambda: run.end_span(fault, "its events arrive at once"))


async def delete_node(run: OperatorRun, _: Disturbance) -> None:
    nodes = await run.requests.list("nodes", "", "", "")
    if len(nodes) < 2:
        raise ObjectMissing("there is no other node")
    pods = await run.requests.list("pods", "", "", "")
    names = [pod["spec"].get("nodeName") for pod in pods]
    node = max(nodes, key=lambda node: (names.count(meta.name(node)), meta.name(node)))
    await run.requests.delete("node", meta.name(node), "default", ignore_not_found=True)
    # A run does not last as long as the pod garbage collector waits, and no kubelet ends its pods.
    run.hold_back(partial(_collect_pods, run, meta.name(node)))


async def _collect_pods(run: OperatorRun, node: str) -> None:
    """Delete the pods of a node that is gone, as the pod garbage collector does after a minute, if that is no loss for good."""
    own = {meta.uid(each.pod) for each in run.setting.identity.pods}  # the operator runs elsewhere
    pods = [
        pod
        for pod in await run.requests.list("pods", "", "", "")
        if pod["spec"].get("nodeName") == node and meta.uid(pod) not in own and _is_replaced(pod)
    ]
    if pods:
        run.trace.note("the pods of the deleted node are garbage, and are deleted")
    for pod in pods:
        with suppress(NotFound):
            await _delete_as_garbage(run, pod)


def _is_replaced(pod: ReadOnlyTree) -> bool:
    """Return whether a pod is to end, or has an owner that makes another one on another node."""
    return meta.is_deleting(pod) or (meta.controller_of(pod) is not None and not _is_of_one_node(pod))


def _is_of_one_node(pod: ReadOnlyTree) -> bool:
    """Return whether a pod can run on no other node, as that of a DaemonSet, a static one, and one whose volume is there."""
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    has_claim = any("persistentVolumeClaim" in volume for volume in pod["spec"].get("volumes") or ())
    is_static = ANNOTATION_MIRROR_POD in meta.annotations(pod)
    return has_claim or is_static or required_names(required) is not None


async def _delete_as_garbage(run: OperatorRun, pod: ReadOnlyTree) -> None:
    key = Key(meta.namespace(pod), meta.name(pod))
    if not _has_ended(pod):
        now = run.clock.now()
        status = {"phase": FAILED, **disruption_status(pod, *OF_DELETED_NODE, now, meta.generation(pod))}
        body = {"metadata": {"uid": meta.uid(pod)}, "status": status}
        await run.client.patch(PODS, key, body, kind="strategic", subresource="status")
    await run.client.delete(PODS, key, uid=meta.uid(pod), grace_period_seconds=0)


async def delete_owned(run: OperatorRun, disturbance: Disturbance) -> None:
    kind, namespace, name = find_object(run, disturbance)
    await run.requests.delete(kind, name, namespace or "default", ignore_not_found=True)


async def edit_owned(run: OperatorRun, disturbance: Disturbance) -> None:
    """Change a field of an object that the operator has set; of a default it may say nothing."""
    kind, namespace, name = find_object(run, disturbance)
    try:
        found = await ResourceNames(run.client).find(kind)
        edit = await edit_field(run.client, found.resource, Key(namespace, name))
    except (NotFound, KindNotServed, NotEditable) as error:
        raise ObjectMissing(f"{kind} {name}: {error}") from error
    run.trace.note(f"{edit} of {kind} {name}")


async def change_subject(run: OperatorRun, disturbance: Disturbance) -> None:
    edit = await _edit_subject(run, find_object(run, disturbance))
    await run.quiet()
    kind, namespace, name = find_object(run, disturbance)
    await run.requests.patch((kind, name, edit.back), namespace or "default", "merge", "")


async def _edit_subject(run: OperatorRun, identity: Identity) -> Edit:
    """Change a field of an object: the first one that may have another value."""
    kind, namespace, name = identity
    problem = "it has no field to change"
    for edit in edits_of(await _current(run, identity))[:MAX_TRIES]:
        try:
            await run.requests.patch((kind, name, edit.forward), namespace or "default", "merge", "")
        except ApiError as error:
            problem = error.message
        else:
            run.trace.note(f"{edit.text} of {kind} {name}")
            return edit
    raise ObjectMissing(f"{kind} {name}: {problem}")


async def _current(run: OperatorRun, identity: Identity) -> ReadOnlyTree:
    """Return an object from the server: a trace has no values of Secrets."""
    kind, namespace, name = identity
    try:
        tree: ReadOnlyTree = await run.requests.get(kind, name, namespace or "default")
    except (NotFound, KindNotServed) as error:
        raise ObjectMissing(f"there is no {kind} {name}") from error
    return tree


async def delete_subject(run: OperatorRun, disturbance: Disturbance) -> None:
    await end_subject(run, plans.ENDINGS[disturbance.action])


async def recreate_subject(run: OperatorRun, disturbance: Disturbance) -> None:
    """Delete the resource, and create it with the same content when it is gone, but without what the operator has noted in it."""
    if run.is_subject_deleted:
        raise ObjectMissing(f"{disturbance.object} was deleted for good")
    identity = kind, namespace, name = find_object(run, disturbance)
    current = await _current(run, identity)
    if meta.is_deleting(current):  # by a step: the scenario ends without it
        raise ObjectMissing(f"{disturbance.object} is being deleted")
    await run.wait_until(lambda: run.trace.has_seen(current), run.limits.settle)
    metadata = {"name": name, **run.trace.metadata_of_others(identity)}
    content = {field: value for field, value in current.items() if field not in ("metadata", "status")}
    await run.requests.delete(kind, name, namespace or "default", ignore_not_found=True)

    def is_gone() -> bool:  # by its uid, because another disturbance may create it anew as well
        known = run.trace.objects.get(identity)
        return known is None or meta.uid(known) != meta.uid(current)

    async def create() -> None:
        if not await run.wait_until(is_gone, max(run.deadline - run.clock.monotonic(), 0.1)):
            return
        async with run.creating:
            if not run.is_subject_deleted and identity not in run.trace.objects:
                run.trace.note(f"{kind} {name} is created anew")
                await run.requests.apply({**content, "metadata": metadata}, namespace or "default")

    run.later(_unless_waiting_fails(create()))


async def recreate_and_start_with_old_lists(run: OperatorRun, disturbance: Disturbance) -> None:
    """Let the operator start with what was while its resource was deleted, after that was created anew and all is quiet."""
    await recreate_subject(run, disturbance)
    await run.quiet()
    await start_with_old_lists(
        run, Disturbance(action=plans.STALE_START, resource=plans.ALL, is_deleting=True)
    )


async def end_subject(run: OperatorRun, ending: str) -> None:
    ref = run.setting.scenario.subject
    assert ref is not None
    run.trace.note(f"{'the namespace of ' if ending == plans.TERMINATE else ''}{ref.target} is deleted")
    async with run.creating:
        run.is_subject_deleted = True
        await _delete_subject(run, ref, ending)
    run.trace.touch()  # its Changes are still to come


async def _delete_subject(run: OperatorRun, ref: ObjectRef, ending: str) -> None:
    with suppress(KindNotServed):
        if ending == plans.TERMINATE:
            await run.requests.delete("namespace", ref.namespace, "default", ignore_not_found=True)
        else:
            await run.requests.delete(ref.target, None, ref.namespace, ignore_not_found=True)


def find_object(run: OperatorRun, disturbance: Disturbance) -> Identity:
    """Return the object that a disturbance is about, which may have another name in each run."""
    kind = disturbance.object.partition("/")[0]
    for identity in sorted(run.trace.objects):
        of_kind, namespace, name = identity
        if of_kind == kind and namespace == disturbance.namespace and disturbance.is_about(name):
            return identity
    raise ObjectMissing(f"there is no {disturbance.object}")


async def _unless_waiting_fails(work: Coroutine[Any, Any, None]) -> None:
    with suppress(WaitFailed, ApiError, KindNotServed):
        await work


ACTIONS: Final[Mapping[str, Callable[[OperatorRun, Disturbance], Awaitable[None]]]] = {
    plans.RESTART: restart,
    plans.SECOND: start_second,
    plans.LOSE_LEASE: lose_lease,
    plans.HOLD: hold,
    plans.DROP: drop,
    plans.LAG: lag,
    plans.DOWN: stop_for_a_step,
    plans.WEBHOOKS: stop_webhooks,
    plans.EXPIRE: expire_token,
    plans.SKEW: skew_clock,
    plans.EVICT: evict_pod,
    plans.NODE: delete_node,
    plans.DELETE_OWNED: delete_owned,
    plans.EDIT_OWNED: edit_owned,
    plans.DELETE_SUBJECT: delete_subject,
    plans.TERMINATE_NAMESPACE: delete_subject,
    plans.RECREATE: recreate_subject,
    plans.STALE_START: start_with_old_lists,
    plans.RECREATE_STALE: recreate_and_start_with_old_lists,
    plans.CHANGE_SUBJECT: change_subject,
}
