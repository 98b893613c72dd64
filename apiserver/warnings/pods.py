"""Pods, and templates of pods: all that is said of them, in upstream's order."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from apimachinery.gotext import quote
from apimachinery.paths import ROOT, Path
from apiserver.validation.pods.likeness import likeness, remembered_by_likeness
from apiserver.validation.pods.surroundings import containers_of
from apiserver.validation.rules import Tree
from apiserver.warnings import labels
from apiserver.warnings.addresses import of_ip, of_ips
from apiserver.warnings.amounts import of_amounts
from apiserver.warnings.containers import NO_SECCOMP, SECCOMP_POD, of_annotations, of_container
from apiserver.warnings.ports import of_ports
from apiserver.warnings.volumes import of_volumes

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_NO_POD: Final = "a null labelSelector results in matching no pod"
_NO_SYSCTLS: Final = 'non-functional in v1.11+; use the "sysctls" field instead'
_ANNOTATIONS: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": _NO_SYSCTLS,
    "security.alpha.kubernetes.io/unsafe-sysctls": _NO_SYSCTLS,
}

# Most pods have none of these fields, and every pod comes by here.
_PLACING: Final = frozenset({"nodeSelector", "affinity", "topologySpreadConstraints"})
_LISTS: Final = frozenset({"hostAliases", "imagePullSecrets", "overhead"})
_OTHERS: Final = frozenset({"affinity", "dnsConfig", "hostAliases"})


def of_template(tree: Tree, at: Path, *, in_pod: bool = False) -> list[str]:
    """Of what has a pod's metadata and spec: a template, or a pod itself."""
    spec, annotations = tree.get("spec") or {}, (tree.get("metadata") or {}).get("annotations")
    if not annotations and _is_unremarkable(likeness(spec)):
        return []
    return _of_all(spec, annotations, at, in_pod=in_pod)


@remembered_by_likeness
def _is_unremarkable(spec: Tree) -> bool:
    return not _of_all(spec, None, ROOT)


def _of_all(
    spec: Tree, annotations: Mapping[str, Any] | None, at: Path, *, in_pod: bool = False
) -> list[str]:
    path, found = at.child("spec"), list[str]()
    if not spec.keys().isdisjoint(_PLACING):
        found += _scheduling(spec, path)
    if annotations:
        found += _deprecated(annotations, at)
    if volumes := spec.get("volumes"):
        found += of_volumes(volumes, path.child("volumes"))
    if not spec.keys().isdisjoint(_LISTS):
        found += _lists(spec, path)
    containers = [*containers_of(spec, path)]
    if annotations:
        found += _seccomp(spec, annotations, at)
    for container, place in containers:
        if annotations:
            keys = at.child("metadata", "annotations")
            found += of_annotations(container, annotations, keys, spec, in_pod=in_pod)
        found += of_container(container, place)
    found += of_ports(containers)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        where = path.child("terminationGracePeriodSeconds")
        found.append(f"{where}: must be >= 0; negative values are invalid and will be treated as 1")
    if not spec.keys().isdisjoint(_OTHERS):
        found += (*_neighbours(spec, path), *_addresses(spec, path))
    return found


def _scheduling(spec: Tree, path: Path) -> Iterator[str]:
    if selector := spec.get("nodeSelector"):
        yield from labels.of_keys(selector, path.child("nodeSelector"))
    if affinity := (spec.get("affinity") or {}).get("nodeAffinity"):
        at = path.child("affinity", "nodeAffinity")
        terms = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms")
        yield from labels.of_terms(terms, at.child(_REQUIRED, "nodeSelectorTerms"))
        yield from labels.of_preferences(affinity.get(_PREFERRED), at.child(_PREFERRED))
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        at, key = path.child("topologySpreadConstraints").index(index), constraint.get("topologyKey", "")
        if key in labels.DEPRECATED:
            yield f"{at.child('topologyKey')}: {key} is {labels.DEPRECATED[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{at.child('labelSelector')}: {_NO_POD}"


def _deprecated(annotations: Mapping[str, Any], at: Path) -> Iterator[str]:
    for name, problem in _ANNOTATIONS.items():
        if name in annotations:
            yield f"{at.child('metadata', 'annotations').key(name)}: {problem}"


def _lists(spec: Tree, path: Path) -> Iterator[str]:
    """Of lists in which something comes twice, and of what a pod needs besides its containers."""
    yield from _twice(spec.get("hostAliases"), "ip", path.child("hostAliases"))
    secrets, at = spec.get("imagePullSecrets") or (), path.child("imagePullSecrets")
    yield from _twice(secrets, "name", at)
    for index, secret in enumerate(secrets):
        if not secret.get("name"):
            yield f'{at.index(index).child("name")}: invalid empty name ""'
    if overhead := spec.get("overhead"):
        yield from of_amounts(overhead, path.child("overhead"), ("memory", "ephemeral-storage"))


def _twice(items: Iterable[Tree] | None, field: str, path: Path) -> Iterator[str]:
    seen = set()
    for index, item in enumerate(items or ()):
        value = item.get(field, "")
        if value in seen:
            yield f"{path.index(index).child(field)}: duplicate {field} {quote(value)}"
        seen.add(value)


def _seccomp(spec: Tree, annotations: Mapping[str, Any], at: Path) -> Iterator[str]:
    if SECCOMP_POD in annotations and (spec.get("securityContext") or {}).get("seccompProfile") is None:
        yield f"{at.child('metadata', 'annotations').key(SECCOMP_POD)}: {NO_SECCOMP}"


def _neighbours(spec: Tree, path: Path) -> Iterator[str]:
    """Of terms about other pods that no pod meets."""
    affinity = spec.get("affinity") or {}
    for field in ("podAffinity", "podAntiAffinity"):
        if not (rules := affinity.get(field)):
            continue
        at = path.child("affinity", field)
        for index, term in enumerate(rules.get(_REQUIRED) or ()):
            if term.get("labelSelector") is None:
                yield f"{at.child(_REQUIRED).index(index).child('labelSelector')}: {_NO_POD}"
        for index, weighted in enumerate(rules.get(_PREFERRED) or ()):
            if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
                there = at.child(_PREFERRED).index(index)
                yield f"{there.child('podAffinityTerm', 'labelSelector')}: {_NO_POD}"


def _addresses(spec: Tree, path: Path) -> Iterator[str]:
    if dns := spec.get("dnsConfig"):
        yield from of_ips(dns.get("nameservers"), path.child("dnsConfig", "nameservers"))
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        yield from of_ip(alias.get("ip", ""), path.child("hostAliases").index(index).child("ip"))
