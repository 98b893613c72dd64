"""Why a minor does not serve a version of a kind: it was removed, is too new, is disabled, or does not exist. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from mockube.apimachinery.gotext import quote
from mockube.apimachinery.groups import GroupVersion
from mockube.apimachinery.schema import minors
from mockube.apiserver.kinds.betas import BETAS
from mockube.apiserver.kinds.kind import Group
from mockube.apiserver.kinds.resource_config import REGISTERED, not_served
from mockube.apiserver.kinds.served_kinds import kinds_of
from mockube.component_base.suggestions import nearest

from .findings import Api, ObjectFinding, Outcome
from .minor_ranges import ALL

_REMOVED: Final = """
1.16 extensions/v1beta1 DaemonSet Deployment NetworkPolicy PodSecurityPolicy ReplicaSet
1.16 apps/v1beta1 ControllerRevision Deployment StatefulSet
1.16 apps/v1beta2 ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet
1.20 settings.k8s.io/v1alpha1 PodPreset
1.21 batch/v2alpha1 CronJob
1.22 admissionregistration.k8s.io/v1beta1 MutatingWebhookConfiguration ValidatingWebhookConfiguration
1.22 apiextensions.k8s.io/v1beta1 CustomResourceDefinition
1.22 apiregistration.k8s.io/v1beta1 APIService
1.22 authentication.k8s.io/v1beta1 TokenReview
1.22 authorization.k8s.io/v1beta1 LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview
1.22 certificates.k8s.io/v1beta1 CertificateSigningRequest
1.22 coordination.k8s.io/v1beta1 Lease
1.22 extensions/v1beta1 Ingress
1.22 networking.k8s.io/v1beta1 Ingress IngressClass
1.22 rbac.authorization.k8s.io/v1alpha1 ClusterRole ClusterRoleBinding Role RoleBinding
1.22 rbac.authorization.k8s.io/v1beta1 ClusterRole ClusterRoleBinding Role RoleBinding
1.22 scheduling.k8s.io/v1alpha1 PriorityClass
1.22 scheduling.k8s.io/v1beta1 PriorityClass
1.22 storage.k8s.io/v1beta1 CSIDriver CSINode StorageClass VolumeAttachment
1.24 storage.k8s.io/v1alpha1 CSIStorageCapacity VolumeAttachment
1.25 autoscaling/v2beta1 HorizontalPodAutoscaler
1.25 batch/v1beta1 CronJob
1.25 discovery.k8s.io/v1beta1 EndpointSlice
1.25 events.k8s.io/v1beta1 Event
1.25 node.k8s.io/v1beta1 RuntimeClass
1.25 policy/v1beta1 Eviction PodDisruptionBudget PodSecurityPolicy
1.26 autoscaling/v2beta2 HorizontalPodAutoscaler
1.26 flowcontrol.apiserver.k8s.io/v1beta1 FlowSchema PriorityLevelConfiguration
1.27 storage.k8s.io/v1beta1 CSIStorageCapacity
1.29 flowcontrol.apiserver.k8s.io/v1beta2 FlowSchema PriorityLevelConfiguration
"""
"""What was removed before or in the oldest supported minor: the minor, the version, and its kinds."""
_INSTEAD: Final = {"PodSecurityPolicy": "Pod Security admission, which labels of namespaces configure"}
"""What replaces a kind that has no later version."""
_GATES: Final = frozenset({"CompositePodGroup", "EvictionRequestAPI", "GenericWorkload"})
"""Gates that make a kube-apiserver serve kinds."""


def unserved_version(api_version: str, kind: str) -> ObjectFinding:
    """Return that the definition of a kind in the files was refused, or does not serve the version."""
    reason = "its CustomResourceDefinition in the files is refused or does not serve the version"
    return ObjectFinding(outcome=Outcome.UNKNOWN, message=_no_matches(api_version, kind, reason))


def _no_matches(api_version: str, kind: str, reason: str) -> str:
    return f"no matches for kind {quote(kind)} in version {quote(api_version)}: {reason}"


def unserved(api_version: str, kind: str, minor: str) -> ObjectFinding:
    """Return why a minor does not serve a version of a built-in kind, or that there is no such kind."""
    outcome, reason = _reason(api_version, kind, minor)
    replacement = _replacement(api_version, kind, minor)
    if outcome is Outcome.UNKNOWN:
        replacement = None
        advice = _suggestion(api_version, kind, minor)
    elif replacement is not None:
        advice = f", use {replacement.api_version}"
    else:
        advice = f", use {_INSTEAD[kind]}" if kind in _INSTEAD else ""
    return ObjectFinding(
        outcome=outcome,
        message=_no_matches(api_version, kind, f"{reason}{advice}"),
        replacement=replacement,
    )


def _reason(api_version: str, kind: str, minor: str) -> tuple[Outcome, str]:
    if _is_disabled(api_version, kind, minor):
        return Outcome.DISABLED, f"served only with --runtime-config={api_version}=true"
    earlier, later = _available_in(api_version, kind, minor)
    removed = removals().get((api_version, kind))
    if removed is None and earlier and not later:
        removed = ALL[ALL.index(earlier[-1]) + 1]
    if removed is not None:
        return Outcome.REMOVED, f"removed in {removed}"
    if later:
        return Outcome.NOT_YET, f"new in {later[0]}"
    return Outcome.UNKNOWN, _unknown_reason(api_version)


def _available_in(api_version: str, kind: str, minor: str) -> tuple[Sequence[str], Sequence[str]]:
    """Return the minors before and after one that serve a version of a kind, at least if a flag enables it."""
    available = [
        each
        for each in ALL
        if kind in _kinds(each).get(api_version, ()) or _is_disabled(api_version, kind, each)
    ]
    later = [each for each in available if minors.is_before(minor, each)]
    return [each for each in available if each not in later], later


def _is_disabled(api_version: str, kind: str, minor: str) -> bool:
    return _guess_plural(kind) in _disabled(minor).get(api_version, ())


def _unknown_reason(api_version: str) -> str:
    group, _ = GroupVersion.parse(api_version)
    if group in REGISTERED:
        return "Kubernetes has no such kind"
    return "no CustomResourceDefinition of it is in the files"


def _suggestion(api_version: str, kind: str, minor: str) -> str:
    """Return a suggestion for a kind that does not exist: a similar name, or another version that has the kind."""
    if GroupVersion.parse(api_version).group not in REGISTERED:
        return ""
    other = _replacement(api_version, kind, minor)
    suggested = other.api_version if other is not None else nearest(kind, _kinds(minor).get(api_version, ()))
    return f": did you mean {suggested}?" if suggested else ""


def _replacement(api_version: str, kind: str, minor: str) -> Api | None:
    """Return the version of a kind that a minor serves, in the same group if there is one."""
    group = GroupVersion.parse(api_version).group
    others = [other for other, kinds in _kinds(minor).items() if kind in kinds]
    others.sort(key=lambda other: GroupVersion.parse(other).group != group)
    return Api(api_version=others[0], kind=kind) if others else None


@cache
def _kinds(minor: str) -> Mapping[str, Sequence[str]]:
    """Return the kinds that can be created in a minor, by apiVersion."""
    return _creatable(kinds_of(minor).groups)


def _creatable(groups: Sequence[Group]) -> Mapping[str, Sequence[str]]:
    kinds: dict[str, list[str]] = {}
    for group in groups:
        for row in group.resources:
            if "create" in row.verbs:
                kinds.setdefault(row.api_version, []).append(row.kind)
    return kinds


@cache
def removals() -> Mapping[tuple[str, str], str]:
    lines = [line.split() for line in _REMOVED.strip().split("\n")]
    return {(api_version, kind): minor for minor, api_version, *kinds in lines for kind in kinds}


@cache
def _disabled(minor: str) -> Mapping[str, Sequence[str]]:
    """Return the resources that kube-apiserver of a minor serves if a flag enables them, by apiVersion."""
    resources: dict[str, list[str]] = {}
    for api_version, name in _disabled_resources(minor):
        resources.setdefault(api_version, []).append(name)
    return resources


def _disabled_resources(minor: str) -> Iterator[tuple[str, str]]:
    for beta in BETAS:
        first, last = beta.minors
        if not minors.is_before(minor, first) and not minors.is_before(last, minor):
            yield from ((f"{beta.group}/{beta.version}", name) for name in beta.resources)
    yield from ((f"{group}/{version}", name) for group, version, name in not_served(minor, _GATES))


def _guess_plural(kind: str) -> str:
    """Return the name of a resource as Kubernetes guesses it from the kind."""
    name = kind.lower()
    if name.endswith("s"):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"
