"""Why an autoscaler does not scale, a CertificateSigningRequest has no certificate, and a custom object is not reconciled."""

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from difflib import SequenceMatcher
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.tree import ReadOnlyTree

from .commands import about
from .explanation import Evidence, Explanation, ObjectName, Origin, Related, Remedy, no_problem, unknown
from .facts import Facts
from .owners import DEPLOYMENTS, STATEFUL_SETS
from .records import condition_evidence, find_events
from .remedies import MERGE, approved, deleted, patched, template_patch

_NAMES: Final = re.compile(r"/([a-z0-9.-]+)")
"""The names of objects, behind their namespaces."""
NOT_RECONCILED: Final = "NotReconciled"
YOUNG: Final = timedelta(seconds=5)
"""The age up to which an operator may not have seen an object."""
AUTOSCALERS: Final = GroupResource("autoscaling", "horizontalpodautoscalers")
DEFINITIONS: Final = GroupResource("apiextensions.k8s.io", "customresourcedefinitions")
OWN_SIGNERS: Final = "kubernetes.io/"
_SCALED: Final = {DEPLOYMENTS: "Deployment", STATEFUL_SETS: "StatefulSet"}
"""What autoscalers mostly scale."""


def explain_autoscaler(autoscaler: ReadOnlyTree, facts: Facts) -> Explanation:
    evidence = [*map(condition_evidence, conditions.of(autoscaler))]
    target = autoscaler["spec"]["scaleTargetRef"]
    for name in ("AbleToScale", "ScalingActive"):
        condition = conditions.get(autoscaler, name)
        if condition is not None and condition.get("status") == "False":
            is_not_found = "not found" in (condition.get("message") or "")
            if is_not_found and (missing := _missing_target(autoscaler, facts)):
                return replace(missing, evidence=evidence)
            others = [*_others_of_pods(autoscaler, condition, facts)]
            return Explanation(
                cause=f"it does not scale {target['kind']} {target['name']}, {condition.get('reason')}: {condition.get('message')}",
                evidence=[*evidence, *find_events(autoscaler, facts, (condition.get("reason") or "",))],
                remedies=[
                    *_metrics_remedies(autoscaler, condition, facts),
                    *(deleted("Delete the other one:", each) for each in others),
                ],
                related=[
                    Related(object=ObjectName.of(each), cause="scales the same pods") for each in others
                ],
                origins=[Origin.of(autoscaler, "spec"), *(Origin.of(each, "spec") for each in others)],
            )
    if not evidence:
        return unknown(
            "the autoscaler has no conditions: its controller has not looked at it yet, or does not run"
        )
    return _scaling(autoscaler, evidence)


def _others_of_pods(
    autoscaler: ReadOnlyTree, condition: ReadOnlyTree, facts: Facts
) -> Iterator[ReadOnlyTree]:
    """Yield the autoscalers that a condition names as those of the same pods."""
    if condition.get("reason") != "AmbiguousSelector":
        return
    namespace = meta.namespace(autoscaler)
    message = condition.get("message") or ""
    names = {found[1] for found in _NAMES.finditer(message) if message[: found.start()].endswith(namespace)}
    for each in facts.list(AUTOSCALERS, namespace):
        if meta.name(each) in names - {meta.name(autoscaler)}:
            yield each


def _missing_target(autoscaler: ReadOnlyTree, facts: Facts) -> Explanation | None:
    """Explain an autoscaler whose target does not exist, with the workload that it may mean; None if it exists."""
    target, namespace = autoscaler["spec"]["scaleTargetRef"], meta.namespace(autoscaler)
    name, kind = target["name"], target["kind"]
    if not facts.is_missing(_scaled_resource(target), namespace, name):
        return None
    workloads = [
        (meta.name(each), other_kind)
        for resource, other_kind in _SCALED.items()
        for each in facts.list(resource, namespace)
    ]
    similar = max(
        workloads,
        key=lambda each: (SequenceMatcher(a=name, b=each[0]).ratio(), each[1] == kind),
        default=None,
    )
    changes = []
    if similar is not None:
        other, other_kind = similar
        reference = {"apiVersion": "apps/v1", "kind": other_kind, "name": other}
        text = f"Name one that exists, such as the {other_kind} {other}:"
        patch = {"spec": {"scaleTargetRef": reference}}
        changes = [patched(text, autoscaler, patch, media_type=MERGE)]
    return Explanation(
        cause=f"it does not scale anything: the {kind} {name} does not exist",
        remedies=[*changes, Remedy(text=f"Or create the {kind} {name}.")],
        origins=[
            Origin.of(autoscaler, "spec", "scaleTargetRef"),
            Origin.named(target.get("apiVersion") or "", kind, namespace, name),
        ],
    )


def _scaled_resource(target: ReadOnlyTree) -> GroupResource:
    return GroupResource((target.get("apiVersion") or "").rpartition("/")[0], f"{target['kind'].lower()}s")


def _scaling(autoscaler: ReadOnlyTree, evidence: Sequence[Evidence]) -> Explanation:
    """Explain an autoscaler that has metrics, by what limits it."""
    status = autoscaler.get("status") or {}
    current, desired = status.get("currentReplicas") or 0, status.get("desiredReplicas") or 0
    limited = conditions.get(autoscaler, "ScalingLimited") or {}
    limit = limited.get("reason") if limited.get("status") == "True" else None
    reason = f"{limit}: {limited.get('message')}"
    if limit == "TooManyReplicas":
        return Explanation(
            cause=f"it wants more replicas than maxReplicas, {reason}",
            evidence=evidence,
            remedies=[_raised(autoscaler)],
            origins=[Origin.of(autoscaler, "spec", "maxReplicas")],
        )
    if limit in ("ScaleUpLimit", "ScaleDownLimit"):
        return Explanation(
            cause=f"it scales step by step, as fast as spec.behavior or its default allows, {reason}",
            evidence=evidence,
            remedies=[Remedy(text="Change the policies of spec.behavior.")],
            origins=[Origin.of(autoscaler, "spec", "behavior")],
        )
    if current != desired:
        return unknown(
            f"{current} replicas are there and {desired} are wanted; the scaling goes on", *evidence
        )
    if limit == "TooFewReplicas":
        return no_problem(f"it has {current} replicas, its minimum, and its metrics ask for fewer", *evidence)
    able = conditions.get(autoscaler, "AbleToScale") or {}
    if able.get("reason") in ("ScaleDownStabilized", "ScaleUpStabilized"):
        return no_problem(
            f"it keeps {current} replicas for now, {able['reason']}: {able.get('message')}", *evidence
        )
    if limit is not None:
        return unknown(f"its replicas are limited, {reason}", *evidence)
    return no_problem(f"its metrics ask for the {current} replicas that are there", *evidence)


def _raised(autoscaler: ReadOnlyTree) -> Remedy:
    doubled = 2 * int(autoscaler["spec"]["maxReplicas"])
    return patched("Raise maxReplicas, such as:", autoscaler, {"spec": {"maxReplicas": doubled}})


_AMOUNTS: Final = {"cpu": "100m", "memory": "128Mi"}


def _metrics_remedies(autoscaler: ReadOnlyTree, condition: ReadOnlyTree, facts: Facts) -> list[Remedy]:
    _, found, rest = (condition.get("message") or "").partition("missing request for ")
    if not found:
        return []
    resource = rest.partition(" ")[0]
    target = autoscaler["spec"]["scaleTargetRef"]
    head = {
        "apiVersion": target["apiVersion"],
        "kind": target["kind"],
        "metadata": {"name": target["name"], "namespace": meta.namespace(autoscaler)},
    }
    scaled = facts.find(_scaled_resource(target), meta.namespace(autoscaler), target["name"])
    amount = _AMOUNTS.get(resource)
    if amount is None or scaled is None:
        return [Remedy(text=f"Give the containers requests of {resource}.")]
    requests = {"resources": {"requests": {resource: amount}}}
    changes = [
        {"name": each["name"], **requests} for each in scaled["spec"]["template"]["spec"]["containers"]
    ]
    return [
        patched(
            "Give the containers requests, such as:",
            head,
            template_patch(head, {"containers": changes}),
            command=about(head, "set resources", f"--requests={resource}={amount}"),
        )
    ]


def explain_signing_request(request: ReadOnlyTree, _: Facts) -> Explanation:
    signer = request["spec"].get("signerName") or ""
    evidence = [
        Evidence(text=f"signerName is {signer}, by {request['spec'].get('username')}", source="spec"),
        *map(condition_evidence, conditions.of(request)),
    ]
    if (request.get("status") or {}).get("certificate"):
        return no_problem("the certificate is issued", *evidence)
    for outcome in ("Denied", "Failed"):
        condition = conditions.get(request, outcome)
        if condition is not None:
            return Explanation(
                cause=f"it was {outcome.lower()}, {condition.get('reason')}: {condition.get('message')}",
                evidence=evidence,
            )
    if conditions.get(request, "Approved") is None:
        return Explanation(
            cause="nobody has approved it",
            evidence=evidence,
            remedies=[
                approved("Approve it:", request, "Approved"),
                approved("Or deny it:", request, "Denied"),
            ],
        )
    if not signer.startswith(OWN_SIGNERS):
        return Explanation(
            cause=f"it is approved, and the signer {signer} has not signed it: no controller of Kubernetes does",
            evidence=evidence,
            remedies=[Remedy(text=f"Start the program that signs for {signer}.")],
        )
    return unknown(f"it is approved, and the signer {signer} has not signed it", *evidence)


def explain_definition(definition: ReadOnlyTree, facts: Facts) -> Explanation:
    """Explain a CustomResourceDefinition that is not served, such as for the names of another one."""
    names, established = (conditions.get(definition, name) for name in ("NamesAccepted", "Established"))
    evidence = [condition_evidence(each) for each in (names, established) if each is not None]
    if names is not None and names.get("status") == "False":
        others = [*_same_names(definition, facts)]
        of_other = f": the CustomResourceDefinition {meta.name(others[0])} has the name" if others else ""
        return Explanation(
            cause=f"its names are not accepted, {names.get('reason')}: {names.get('message')}{of_other}",
            evidence=evidence,
            remedies=[
                Remedy(text="Choose other names in spec.names, or another group."),
                *(deleted(f"Or delete {meta.name(each)}, with its objects:", each) for each in others),
            ],
            related=[Related(object=ObjectName.of(each), cause="has the name") for each in others],
            origins=[
                Origin.of(definition, "spec", "names"),
                *(Origin.of(each, "spec", "names") for each in others),
            ],
        )
    if established is None:
        return unknown("its controller has not looked at it yet", *evidence)
    if established.get("status") == "True":
        return no_problem("its kind is served", *evidence)
    return Explanation(
        cause=f"its kind is not served, {established.get('reason')}: {established.get('message')}",
        evidence=evidence,
    )


def _same_names(definition: ReadOnlyTree, facts: Facts) -> Iterator[ReadOnlyTree]:
    """Yield the definitions of the same group that have a name that this one wants."""
    names = _names_of(definition["spec"]["names"])
    for each in facts.list(DEFINITIONS):
        is_other = meta.name(each) != meta.name(definition)
        is_same_group = each["spec"]["group"] == definition["spec"]["group"]
        accepted = (each.get("status") or {}).get("acceptedNames") or {}
        if is_other and is_same_group and names & _names_of(accepted):
            yield each


def _names_of(names: ReadOnlyTree) -> set[str]:
    single = {str(names[field]) for field in ("plural", "singular", "kind", "listKind") if names.get(field)}
    return single | {*(names.get("shortNames") or ())}


def explain_other(resource: GroupResource, obj: ReadOnlyTree, facts: Facts) -> Explanation:
    """Explain an object of a kind that is not known: by Events, by who watches it, by its conditions."""
    events = find_events(obj, facts, (NOT_RECONCILED,), limit=1)
    if events:
        return Explanation(cause=events[0].text, evidence=events)
    evidence = [condition_evidence(each) for each in conditions.of(obj) if isinstance(each, dict)]
    warnings = find_events(
        obj, facts, {each["reason"] for each in facts.events_of(obj) if each.get("type") == "Warning"}
    )
    is_custom = "." in resource.group and not resource.group.endswith(".k8s.io")
    if is_custom and not evidence and "status" not in obj:
        return _unwatched(resource, obj, facts, warnings)
    text = "the conditions and Events are the evidence" if evidence or warnings else "it has no conditions"
    return unknown(f"mockube knows nothing of objects of this kind; {text}", *evidence, *warnings)


def _unwatched(
    resource: GroupResource, obj: ReadOnlyTree, facts: Facts, warnings: Sequence[Evidence]
) -> Explanation:
    """Explain a custom object without a status, by the programs that watch its kind."""
    evidence = [Evidence(text="there is no status", source="status"), *warnings]
    created = meta.creation_timestamp(obj)
    if created is not None and facts.now - created < YOUNG:
        return unknown("it has no status yet, and was created just now", *evidence)
    namespace = meta.namespace(obj)
    if not facts.may_list(resource, namespace):
        return unknown(
            "it has no status; who watches its kind is not shown without the right to list it", *evidence
        )
    programs = facts.watchers_of(resource, namespace)
    if programs:
        return unknown(f"it has no status, and {', '.join(programs)} watches its kind", *evidence)
    return Explanation(
        cause=f"it has no status, and no program that could reconcile it watches {resource}: nothing does, unless a program polls",
        evidence=evidence,
        remedies=[Remedy(text=f"Start the operator of {resource}: docs/guides/operators.md.")],
    )
