"""Why an object that is being deleted does not go away: its finalizers, what waits behind them, the contents of a namespace."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.groups import NAMESPACES, PODS, GroupResource
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import (
    FINALIZER_FOREGROUND,
    FINALIZER_JOB_TRACKING,
    FINALIZER_ORPHAN,
    FINALIZER_PV_PROTECTION,
    FINALIZER_PVC_PROTECTION,
)
from mockube.component_base.counted import counted

from .commands import why_object
from .explanation import Evidence, Explanation, ObjectName, Origin, Related, Remedy, unknown
from .facts import Facts
from .records import condition_evidence, find_events
from .remedies import JSON, deleted, patched
from .volumes import claim_names

CUSTOM_CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
LOAD_BALANCER: Final = "service.kubernetes.io/load-balancer-cleanup"
NOT_FINALIZED: Final = "NotFinalized"
MAX_WAITING: Final = 5
"""The objects of a namespace whose finalizers' writers are named."""


class Holder(Struct, frozen=True, kw_only=True):
    """What a finalizer waits for."""

    cause: str
    evidence: Sequence[Evidence] = ()
    related: Sequence[Related] = ()
    remedies: Sequence[Remedy] = ()
    is_known: bool = True


def explain_deletion(obj: ReadOnlyTree, facts: Facts) -> Explanation:
    """Explain an object that has a deletionTimestamp."""
    since = Evidence(
        text=f"metadata.deletionTimestamp is {meta.metadata(obj).get('deletionTimestamp')}",
        source="metadata.deletionTimestamp",
    )
    finalizers = meta.finalizers(obj)
    if not finalizers:
        return unknown("it is being deleted, has no finalizer, and is not gone yet", since)
    holders = [_holder(obj, name, facts) for name in finalizers]
    holders.sort(key=lambda holder: not holder.is_known)
    names = ", ".join(finalizers)
    return Explanation(
        state="Explained" if holders[0].is_known else "Unknown",
        cause=f"it is being deleted and waits for its finalizer {names}: {holders[0].cause}",
        evidence=[
            since,
            *(each for holder in holders for each in holder.evidence),
            *(Evidence(text=f"also, {holder.cause}") for holder in holders[1:]),
        ],
        remedies=[each for holder in holders for each in holder.remedies],
        related=[each for holder in holders for each in holder.related],
        origins=[
            Origin.of(obj, "metadata", "finalizers"),
            Origin.of(obj, "metadata", "deletionTimestamp"),
            *_deleted_namespace(obj, facts),
        ],
    )


def _deleted_namespace(obj: ReadOnlyTree, facts: Facts) -> Iterator[Origin]:
    """Yield the deletion of the namespace of an object, with which its controller deletes what is in it."""
    namespace = facts.find(NAMESPACES, "", meta.namespace(obj)) if meta.namespace(obj) else None
    if namespace is not None and meta.is_deleting(namespace):
        yield Origin.of(namespace, "metadata", "deletionTimestamp")


def _holder(obj: ReadOnlyTree, name: str, facts: Facts) -> Holder:
    known = _FINALIZERS.get(name)
    if known is not None:
        return known(obj, facts)
    manager = _manager_of(obj, name)
    events = find_events(obj, facts, (NOT_FINALIZED,), limit=1)
    setter = f", which {manager} has set," if manager else ""
    evidence = [*events]
    if manager:
        evidence.append(
            Evidence(
                text=f"the field manager of the finalizer {name} is {manager}",
                source="metadata.managedFields",
            )
        )
    remedy = patched(
        f"Start the controller that removes {name}. If there is none, remove it, which skips its cleanup:",
        obj,
        _removal(obj, name),
        media_type=JSON,
    )
    if events:
        return Holder(cause=events[0].text, evidence=evidence, remedies=[remedy])
    return Holder(
        cause=f"the controller of {name}{setter} has not removed it; why is not recorded",
        evidence=evidence,
        remedies=[remedy],
        is_known=False,
    )


def _removal(obj: ReadOnlyTree, name: str) -> Sequence[Mapping[str, str]]:
    position = [*meta.finalizers(obj)].index(name)
    return [
        {"op": "test", "path": f"/metadata/finalizers/{position}", "value": name},
        {"op": "remove", "path": f"/metadata/finalizers/{position}"},
    ]


def _manager_of(obj: ReadOnlyTree, finalizer: str) -> str:
    """Return the field manager that has set a finalizer; "" if it is not recorded."""
    for entry in meta.metadata(obj).get("managedFields") or ():
        fields: Any = entry.get("fieldsV1") or {}
        finalizers = (fields.get("f:metadata") or {}).get("f:finalizers") or {}
        if f'v:"{finalizer}"' in finalizers:
            return str(entry.get("manager") or "")
    return ""


# --- finalizers of Kubernetes


def _foreground(obj: ReadOnlyTree, facts: Facts) -> Holder:
    blocking = [
        each
        for each in facts.dependents_of(obj)
        if any(
            reference.get("uid") == meta.uid(obj) and reference.get("blockOwnerDeletion")
            for reference in meta.owner_references(each)
        )
    ]
    if not blocking:
        return Holder(
            cause="the garbage collector deletes it when no dependent blocks it; none that you may list does",
            is_known=False,
        )
    first = ObjectName.of(blocking[0])
    return Holder(
        cause=f"{counted(len(blocking), 'dependent', 'dependents')} with blockOwnerDeletion must go first, such as {first}",
        related=[_dependent(each) for each in blocking[:10]],
        remedies=[Remedy(text="Why the first one does not go away:", command=why_object(blocking[0]))],
    )


def _dependent(obj: ReadOnlyTree) -> Related:
    finalizers = ", ".join(meta.finalizers(obj))
    if not meta.is_deleting(obj):
        cause = "is not being deleted yet"
    elif finalizers:
        cause = f"is being deleted, and has the finalizers {finalizers}"
    else:
        cause = "is being deleted"
    return Related(object=ObjectName.of(obj), cause=cause)


def _orphan(_obj: ReadOnlyTree, _facts: Facts) -> Holder:
    return Holder(
        cause="the garbage collector removes it from the owners of its dependents, and has not finished",
        is_known=False,
    )


def _claim_in_use(claim: ReadOnlyTree, facts: Facts) -> Holder:
    namespace = meta.namespace(claim)
    users = [
        pod
        for pod in facts.list(PODS, namespace)
        if meta.name(claim) in claim_names(pod)
        and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
    ]
    if not users:
        return Holder(
            cause="the claim is protected while pods use it; none that you may list does", is_known=False
        )
    names = ", ".join(meta.name(pod) for pod in users[:3])
    return Holder(
        cause=f"{counted(len(users), 'pod uses', 'pods use')} the claim, such as {names}",
        related=[Related(object=ObjectName.of(pod), cause="uses the claim") for pod in users[:10]],
        remedies=[deleted("Delete the pods that use it:", users[0])],
    )


def _volume_in_use(volume: ReadOnlyTree, _: Facts) -> Holder:
    reference = volume["spec"].get("claimRef") or {}
    phase = (volume.get("status") or {}).get("phase")
    if phase != "Bound":
        return Holder(
            cause=f"the volume is protected while it is bound; its phase is {phase}", is_known=False
        )
    claim = ObjectName(
        kind="PersistentVolumeClaim",
        api_version="v1",
        namespace=reference.get("namespace") or "",
        name=reference.get("name") or "",
    )
    return Holder(
        cause=f"the volume is bound to {claim} in {claim.namespace}",
        related=[Related(object=claim, cause="is bound to the volume")],
    )


def _custom_cleanup(definition: ReadOnlyTree, facts: Facts) -> Holder:
    spec = definition["spec"]
    resource = GroupResource(spec["group"], spec["names"]["plural"])
    if not facts.may_list(resource):
        return Holder(cause="its custom objects must go first, which you may not list", is_known=False)
    objects = facts.list(resource)
    if not objects:
        return Holder(cause="its custom objects must go first, and none is left", is_known=False)
    return Holder(
        cause=f"{len(objects)} custom objects must go first, such as {meta.name(objects[0])}",
        related=[_dependent(each) for each in objects[:10]],
        remedies=[Remedy(text="Why the first one does not go away:", command=why_object(objects[0]))],
    )


def _job_tracking(_pod: ReadOnlyTree, _: Facts) -> Holder:
    return Holder(cause="the Job controller has not counted the pod yet", is_known=False)


def _load_balancer(_service: ReadOnlyTree, _: Facts) -> Holder:
    return Holder(
        cause="the cloud's controller of load balancers has not removed the load balancer", is_known=False
    )


_FINALIZERS: Final[Mapping[str, Callable[[ReadOnlyTree, Facts], Holder]]] = {
    FINALIZER_FOREGROUND: _foreground,
    FINALIZER_ORPHAN: _orphan,
    FINALIZER_PVC_PROTECTION: _claim_in_use,
    FINALIZER_PV_PROTECTION: _volume_in_use,
    CUSTOM_CLEANUP: _custom_cleanup,
    FINALIZER_JOB_TRACKING: _job_tracking,
    LOAD_BALANCER: _load_balancer,
}


# --- pods and namespaces


def explain_pod_deletion(pod: ReadOnlyTree, facts: Facts) -> Explanation:
    """Explain a pod that is being deleted: finalizers count after its containers have ended."""
    until = meta.deletion_timestamp(pod)
    grace = meta.deletion_grace_period_seconds(pod)
    status = pod.get("status") or {}
    is_running = any(
        "running" in (each.get("state") or {})
        for field in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
        for each in status.get(field) or ()
    )
    if until is None or not is_running:
        return explain_deletion(pod, facts)
    evidence = [
        Evidence(text=f"deletionGracePeriodSeconds is {grace}", source="metadata.deletionGracePeriodSeconds"),
        *find_events(pod, facts, ("Killing", "FailedPreStopHook", "FailedKillPod")),
    ]
    force = deleted(
        "Delete it without waiting, which leaves its containers to the node:",
        pod,
        "--force",
        "--grace-period=0",
    )
    if facts.now <= until:
        return Explanation(
            cause=f"its containers have until {format_time(until)} to end, the grace period of {grace} seconds",
            evidence=evidence,
            remedies=[force],
        )
    return Explanation(
        state="Unknown",
        cause=f"its grace period ended at {format_time(until)}, and its kubelet has not reported the end of its containers",
        evidence=evidence,
        remedies=[force],
    )


def explain_namespace_deletion(namespace: ReadOnlyTree, facts: Facts) -> Explanation:
    contents = facts.contents_of(meta.name(namespace))
    reported = [each for each in conditions.of(namespace) if each.get("status") == "True"]
    evidence = [*map(condition_evidence, reported)]
    waiting = [each for each in contents if meta.finalizers(each) and meta.is_deleting(each)]
    if waiting:
        names = sorted({name for each in waiting for name in meta.finalizers(each)})
        first = explain_deletion(waiting[0], facts)
        return Explanation(
            cause=f"{counted(len(waiting), 'object in it waits', 'objects in it wait')} for finalizers ({', '.join(names)}), such as {ObjectName.of(waiting[0])}",
            evidence=[*_remaining(contents), *evidence],
            related=[_dependent(each) for each in waiting[:20]],
            remedies=[
                Remedy(text="Why the first one does not go away:", command=why_object(waiting[0])),
                *first.remedies,
            ],
            origins=[
                Origin.of(waiting[0], "metadata", "finalizers"),
                Origin.of(namespace, "metadata", "deletionTimestamp"),
                *(Origin.of(each, "metadata", "finalizers") for each in waiting[1:MAX_WAITING]),
            ],
        )
    failed = [each for each in reported if str(each.get("type")).endswith("Failure")]
    if failed:
        return Explanation(
            cause=f"its contents cannot be deleted: {failed[0].get('message')}",
            evidence=evidence,
            origins=[Origin.of(namespace, "metadata", "deletionTimestamp")],
        )
    if contents:
        return unknown(
            f"{counted(len(contents), 'object in it is', 'objects in it are')} left, and none has a finalizer",
            *_remaining(contents),
            *evidence,
        )
    finalizers = (namespace.get("spec") or {}).get("finalizers") or ()
    if meta.finalizers(namespace):
        return explain_deletion(namespace, facts)
    return unknown(
        f"nothing that you may list is left in it; its spec.finalizers are {', '.join(finalizers) or 'empty'}",
        *evidence,
    )


def _remaining(contents: Sequence[ReadOnlyTree]) -> Iterator[Evidence]:
    for kind, count in Counter(meta.kind(each) for each in contents).most_common():
        yield Evidence(text=f"{count} of kind {kind} are left")
