"""Why a PersistentVolumeClaim is not bound."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.groups import PODS
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.volumes import storage_class_name
from mockube.client.component_helpers.volumes import (
    NO_PROVISIONER,
    SELECTED_NODE,
    capacity,
    default_class,
    has_storage_class_name,
    request,
    waits_for_consumer,
)

from .commands import why_object
from .explanation import Evidence, Explanation, Origin, Remedy, no_problem, unknown
from .facts import Facts
from .records import find_events
from .remedies import MERGE, patched
from .volumes import CLASSES, VOLUMES, claim_names, missing_class

_EVENTS: Final = (
    "ProvisioningFailed",
    "FailedBinding",
    "VolumeMismatch",
    "ClaimMisbound",
    "ClaimLost",
    "ExternalProvisioning",
    "WaitForFirstConsumer",
    "WaitForPodScheduled",
)


def explain_claim(claim: ReadOnlyTree, facts: Facts) -> Explanation:
    phase = (claim.get("status") or {}).get("phase")
    state = Evidence(text=f"the phase is {phase}", source="status.phase")
    if phase == "Bound":
        return no_problem(f"the claim is bound to {claim['spec'].get('volumeName')}", state)
    events = find_events(claim, facts, _EVENTS)
    name = claim["spec"].get("volumeName")
    if phase == "Lost":
        return _lost(name or "", [state, *events], facts)
    if name:
        return _named_volume(claim, name, [state, *events], facts)
    if not has_storage_class_name(claim):
        return _without_class(claim, [state, *events], facts)
    class_name = storage_class_name(claim)
    if not class_name:
        return _from_volumes(claim, class_name, [state, *events], facts)
    if absent := missing_class(claim, facts):
        volumes = _from_volumes(claim, class_name, [state, *events], facts)
        return replace(
            volumes,
            cause=f"{absent.cause}, and {volumes.cause}",
            remedies=[*absent.remedies, *volumes.remedies],
            origins=absent.origins,
        )
    if facts.is_missing(CLASSES, "", class_name):  # volumes have it nevertheless
        return _from_volumes(claim, class_name, [state, *events], facts)
    return _by_class(claim, class_name, [state, *events], facts)


def _lost(name: str, evidence: Sequence[Evidence], facts: Facts) -> Explanation:
    """Explain a claim that was bound: its volume is gone, or is that of another claim."""
    if name and facts.is_missing(VOLUMES, "", name):
        return Explanation(
            cause=f"the volume of the claim, {name}, does not exist any more",
            evidence=evidence,
            origins=[Origin.named("v1", "PersistentVolume", "", name)],
        )
    misbound = [each for each in evidence if "ClaimMisbound" in each.source]
    if misbound:
        return Explanation(cause=f"the claim is not bound any more: {misbound[0].text}", evidence=evidence)
    return unknown(f"the claim is not bound any more to its volume, {name}; why is not recorded", *evidence)


def _named_volume(claim: ReadOnlyTree, name: str, evidence: Sequence[Evidence], facts: Facts) -> Explanation:
    evidence = [Evidence(text=f"spec.volumeName is {name}", source="spec.volumeName"), *evidence]
    if facts.is_missing(VOLUMES, "", name):
        return Explanation(
            cause=f"the PersistentVolume {name}, which it names, does not exist",
            evidence=evidence,
            origins=[Origin.named("v1", "PersistentVolume", "", name)],
        )
    volume = facts.find(VOLUMES, "", name)
    reference = ((volume or {}).get("spec") or {}).get("claimRef") or {}
    owner = f"{reference.get('namespace')}/{reference.get('name')}"
    if reference and owner != f"{meta.namespace(claim)}/{meta.name(claim)}":
        return Explanation(
            cause=f"the PersistentVolume {name}, which it names, is that of the claim {owner}",
            evidence=evidence,
        )
    if reference.get("uid") not in (None, "", meta.uid(claim)):
        return Explanation(
            cause=f"the PersistentVolume {name}, which it names, is that of a claim of the same name, which existed before",
            evidence=evidence,
        )
    mismatches = find_events(claim, facts, ("VolumeMismatch", "ClaimMisbound"), limit=1)
    if mismatches:
        return Explanation(
            cause=f"the PersistentVolume {name}, which it names, does not fit: {mismatches[0].text}",
            evidence=evidence,
        )
    return unknown(f"the PersistentVolume {name}, which it names, is not bound to it yet", *evidence)


def _without_class(claim: ReadOnlyTree, evidence: Sequence[Evidence], facts: Facts) -> Explanation:
    if not facts.may_list(CLASSES):
        return unknown(
            "the claim names no StorageClass; whether there is a default one you may not list", *evidence
        )
    default = default_class(facts.list(CLASSES))
    if default is not None:
        return unknown(
            f"the claim was made before the default StorageClass {meta.name(default)} was there, and has not got it yet",
            *evidence,
        )
    volumes = _from_volumes(claim, "", (), facts)
    return replace(
        volumes,
        cause=f"the claim names no StorageClass, and there is no default one; {volumes.cause}",
        evidence=[*evidence],
        remedies=[Remedy(text="Name a StorageClass in a new claim, or make one the default.")],
    )


def _by_class(claim: ReadOnlyTree, name: str, evidence: Sequence[Evidence], facts: Facts) -> Explanation:
    storage_class = facts.find(CLASSES, "", name)
    if storage_class is None:
        return unknown(f"the claim waits for the StorageClass {name}, which you may not read", *evidence)
    provisioner = storage_class.get("provisioner") or ""
    class_evidence = Evidence(
        text=f"provisioner {provisioner}, volumeBindingMode {storage_class.get('volumeBindingMode') or 'Immediate'}",
        source=f"StorageClass {name}",
    )
    failed = find_events(claim, facts, ("ProvisioningFailed",), limit=1)
    if waits_for_consumer(storage_class) and SELECTED_NODE not in meta.annotations(claim):
        return _waits_for_pod(claim, name, [class_evidence, *evidence], facts)
    if failed:
        return Explanation(
            cause=f"a volume cannot be provisioned: {failed[0].text}", evidence=[class_evidence, *evidence]
        )
    if provisioner == NO_PROVISIONER:
        return _from_volumes(claim, name, [class_evidence, *evidence], facts)
    return unknown(
        f"the provisioner {provisioner} has not made a volume: it does not run, or has not finished",
        class_evidence,
        *evidence,
    )


def _waits_for_pod(claim: ReadOnlyTree, name: str, evidence: Sequence[Evidence], facts: Facts) -> Explanation:
    namespace = meta.namespace(claim)
    if not facts.may_list(PODS, namespace):
        return unknown(
            f"the StorageClass {name} waits for a pod of the claim, and you may not list pods", *evidence
        )
    users = [pod for pod in facts.list(PODS, namespace) if meta.name(claim) in claim_names(pod)]
    if not users:
        return Explanation(
            cause=f"no pod uses the claim: the StorageClass {name} binds a claim when a pod that uses it is scheduled",
            evidence=evidence,
            remedies=[Remedy(text="Create a pod that uses the claim.")],
        )
    if all(pod["spec"].get("nodeName") for pod in users):
        return unknown(
            f"pods such as {meta.name(users[0])} use the claim and have nodes, and the scheduler has selected no node for it",
            *evidence,
        )
    users = [pod for pod in users if not pod["spec"].get("nodeName")]
    return Explanation(
        cause=f"the claim is bound when the pod {meta.name(users[0])} is scheduled, which it is not",
        evidence=evidence,
        remedies=[Remedy(text="Why the pod is not scheduled:", command=why_object(users[0]))],
    )


def _from_volumes(claim: ReadOnlyTree, name: str, evidence: Sequence[Evidence], facts: Facts) -> Explanation:
    """Explain a claim that needs a volume that exists."""
    if not facts.may_list(VOLUMES):
        return unknown("it needs a PersistentVolume that fits, which you may not list", *evidence)
    free = [
        volume
        for volume in facts.list(VOLUMES)
        if storage_class_name(volume) == name and not volume["spec"].get("claimRef")
    ]
    large = [volume for volume in free if not capacity(volume) < request(claim)]
    needed, modes = request(claim), {*claim["spec"].get("accessModes", ())}
    fitting = [volume for volume in large if modes <= {*volume["spec"].get("accessModes", ())}]
    if not free:
        cause = (
            f"no free PersistentVolume has the class {name!r}"
            if name
            else "no free PersistentVolume has no class"
        )
    elif not large:
        cause = f"none of {len(free)} free PersistentVolumes of its class has {needed}"
    elif not fitting:
        return _other_modes(claim, large[0], evidence)
    else:
        return unknown(
            f"{len(fitting)} free PersistentVolumes of its class are large enough and have its access modes; their labels or nodes may not fit",
            *evidence,
        )
    return Explanation(
        cause=cause,
        evidence=evidence,
        remedies=[Remedy(text=f"Create a PersistentVolume of that class with at least {needed}.")],
    )


def _other_modes(claim: ReadOnlyTree, volume: ReadOnlyTree, evidence: Sequence[Evidence]) -> Explanation:
    """Explain a claim by the access modes of a volume that would fit otherwise."""
    needed, present = (", ".join(each["spec"].get("accessModes") or ()) for each in (claim, volume))
    return Explanation(
        cause=f"the PersistentVolume {meta.name(volume)} has the access modes {present}, and the claim needs {needed}",
        evidence=evidence,
        remedies=[
            patched(
                "Let the volume have them, if its storage can:",
                volume,
                {"spec": {"accessModes": [*claim["spec"]["accessModes"]]}},
                media_type=MERGE,
            ),
            Remedy(text=f"Or create the claim anew with {present}."),
        ],
        origins=[Origin.of(claim, "spec", "accessModes"), Origin.of(volume, "spec", "accessModes")],
    )
