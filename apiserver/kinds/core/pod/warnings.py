"""The warnings about pods, pod templates, and names of objects with pod templates, in upstream's order."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from mockube.apimachinery import meta, names
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common import node_labels as labels
from mockube.apiserver.kinds.common.address_warnings import ip_warnings, ips_warnings
from mockube.apiserver.kinds.common.warnings import Warnings, fractional_byte_warnings
from mockube.apiserver.kinds.core.volumes.warnings import volume_warnings

from .context import containers_of
from .spec import cached_by_spec, is_large, spec_cache_key
from .strategy import APPARMOR_ANNOTATION_PREFIX, apparmor_profile

_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_NO_POD: Final = "a null labelSelector results in matching no pod"
_NO_SYSCTLS: Final = 'non-functional in v1.11+; use the "sysctls" field instead'
_ANNOTATIONS: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": 'non-functional in v1.16+; use the "priorityClassName" field instead',
    "security.alpha.kubernetes.io/sysctls": _NO_SYSCTLS,
    "security.alpha.kubernetes.io/unsafe-sysctls": _NO_SYSCTLS,
}

IN_POD_NAMES: Final = "this is used in Pod names and hostnames"
_IN_HOSTNAME: Final = "this is used in the Pod's hostname"

# Most pods have none of these fields, and every write of a pod runs these checks.
_PLACING: Final = frozenset({"nodeSelector", "affinity", "topologySpreadConstraints"})
_LISTS: Final = frozenset({"hostAliases", "imagePullSecrets", "overhead"})
_OTHERS: Final = frozenset({"affinity", "dnsConfig", "hostAliases"})


def name_warnings(tree: ReadOnlyTree, use: str) -> Iterator[str]:
    """Yield a warning about a name that is not a DNS label. `use` describes where the name is used."""
    problems = names.check_dns1123_label(meta.name(tree))
    if problems:
        problem_text = " ".join(problems)
        yield (
            f"metadata.name: {use}, which can result in surprising behavior; a DNS label is recommended: [{problem_text}]"
        )


def template_warnings(tree: ReadOnlyTree, path: Path, *, in_pod: bool = False) -> list[str]:
    """Return the warnings of a pod, or of a pod template."""
    spec, annotations = tree.get("spec") or {}, (tree.get("metadata") or {}).get("annotations")
    if not annotations and not is_large(spec) and _is_unremarkable(spec_cache_key(spec)):
        return []
    return _of_all(spec, annotations, path, in_pod=in_pod)


@cached_by_spec
def _is_unremarkable(spec: ReadOnlyTree) -> bool:
    return not _of_all(spec, None, ROOT)


def _of_all(
    spec: ReadOnlyTree, annotations: Mapping[str, Any] | None, template_path: Path, *, in_pod: bool = False
) -> list[str]:
    path, warnings = template_path.child("spec"), list[str]()
    if not spec.keys().isdisjoint(_PLACING):
        warnings += _scheduling(spec, path)
    if annotations:
        warnings += _deprecated_annotations(annotations, template_path)
    if volumes := spec.get("volumes"):
        warnings += volume_warnings(volumes, path.child("volumes"))
    if not spec.keys().isdisjoint(_LISTS):
        warnings += _lists(spec, path)
    containers = [*containers_of(spec, path)]
    if annotations:
        warnings += _seccomp(spec, annotations, template_path)
    for container, container_path in containers:
        if annotations:
            keys = template_path.child("metadata", "annotations")
            warnings += annotation_warnings(container, annotations, keys, spec, in_pod=in_pod)
        warnings += container_warnings(container, container_path)
    warnings += port_warnings(containers)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        field_path = path.child("terminationGracePeriodSeconds")
        warnings.append(f"{field_path}: must be >= 0; negative values are invalid and will be treated as 1")
    if not spec.keys().isdisjoint(_OTHERS):
        warnings += (*_neighbours(spec, path), *_addresses(spec, path))
    return warnings


def _scheduling(spec: ReadOnlyTree, path: Path) -> Iterator[str]:
    if selector := spec.get("nodeSelector"):
        yield from labels.key_warnings(selector, path.child("nodeSelector"))
    if affinity := (spec.get("affinity") or {}).get("nodeAffinity"):
        field_path = path.child("affinity", "nodeAffinity")
        terms = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms")
        yield from labels.term_warnings(terms, field_path.child(_REQUIRED, "nodeSelectorTerms"))
        yield from labels.preference_warnings(affinity.get(_PREFERRED), field_path.child(_PREFERRED))
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        field_path, key = (
            path.child("topologySpreadConstraints").index(index),
            constraint.get("topologyKey", ""),
        )
        if key in labels.DEPRECATED:
            yield f"{field_path.child('topologyKey')}: {key} is {labels.DEPRECATED[key]}"
        if constraint.get("labelSelector") is None:
            yield f"{field_path.child('labelSelector')}: {_NO_POD}"


def _deprecated_annotations(annotations: Mapping[str, Any], path: Path) -> Iterator[str]:
    for name, problem in _ANNOTATIONS.items():
        if name in annotations:
            yield f"{path.child('metadata', 'annotations').key(name)}: {problem}"


def _lists(spec: ReadOnlyTree, path: Path) -> Iterator[str]:
    """Warn of duplicates in lists, and of fractional overhead."""
    yield from _duplicates(spec.get("hostAliases"), "ip", path.child("hostAliases"))
    secrets, field_path = spec.get("imagePullSecrets") or (), path.child("imagePullSecrets")
    yield from _duplicates(secrets, "name", field_path)
    for index, secret in enumerate(secrets):
        if not secret.get("name"):
            yield f'{field_path.index(index).child("name")}: invalid empty name ""'
    if overhead := spec.get("overhead"):
        yield from fractional_byte_warnings(overhead, path.child("overhead"), ("memory", "ephemeral-storage"))


def _duplicates(items: Iterable[ReadOnlyTree] | None, field: str, path: Path) -> Iterator[str]:
    seen = set()
    for index, item in enumerate(items or ()):
        value = item.get(field, "")
        if value in seen:
            yield f"{path.index(index).child(field)}: duplicate {field} {quote(value)}"
        seen.add(value)


def _seccomp(spec: ReadOnlyTree, annotations: Mapping[str, Any], path: Path) -> Iterator[str]:
    if SECCOMP_POD in annotations and (spec.get("securityContext") or {}).get("seccompProfile") is None:
        yield f"{path.child('metadata', 'annotations').key(SECCOMP_POD)}: {NO_SECCOMP}"


def _neighbours(spec: ReadOnlyTree, path: Path) -> Iterator[str]:
    """Warn of terms about other pods that match no pod."""
    affinity = spec.get("affinity") or {}
    for field in ("podAffinity", "podAntiAffinity"):
        if not (rules := affinity.get(field)):
            continue
        field_path = path.child("affinity", field)
        for index, term in enumerate(rules.get(_REQUIRED) or ()):
            if term.get("labelSelector") is None:
                yield f"{field_path.child(_REQUIRED).index(index).child('labelSelector')}: {_NO_POD}"
        for index, weighted in enumerate(rules.get(_PREFERRED) or ()):
            if (weighted.get("podAffinityTerm") or {}).get("labelSelector") is None:
                term_path = field_path.child(_PREFERRED).index(index)
                yield f"{term_path.child('podAffinityTerm', 'labelSelector')}: {_NO_POD}"


def _addresses(spec: ReadOnlyTree, path: Path) -> Iterator[str]:
    if dns := spec.get("dnsConfig"):
        yield from ips_warnings(dns.get("nameservers"), path.child("dnsConfig", "nameservers"))
    for index, alias in enumerate(spec.get("hostAliases") or ()):
        yield from ip_warnings(alias.get("ip", ""), path.child("hostAliases").index(index).child("ip"))


Placed: TypeAlias = tuple[ReadOnlyTree, Path]

COMPARED: Final = 200
"""The maximum of compared ports of a pod: each is compared with all earlier ones of its number."""


def port_warnings(containers: Iterable[Placed]) -> list[str]:
    placed = [
        (port, path.child("ports").index(index))
        for container, path in containers
        for index, port in enumerate(container.get("ports") or ())
    ]
    return [*_port_conflicts(placed[:COMPARED]), *_names(placed)] if placed else []


def _port_conflicts(placed: Iterable[Placed]) -> Iterator[str]:
    seen: dict[tuple[int, str], list[Placed]] = {}
    for port, path in placed:
        if port.get("hostIP") and not port.get("hostPort"):
            yield f"{path}: hostIP set without hostPort: {_port_text(port)}"
        others = seen.setdefault((port.get("containerPort", 0), port.get("protocol", "")), [])
        for other, other_path in others:
            if conflict := _port_conflict(port, other):
                yield f"{path}: {conflict} port definition with {other_path}"
        others.append((port, path))


def _port_conflict(port: ReadOnlyTree, other: ReadOnlyTree) -> str:
    """Return how two definitions of one port of a protocol conflict, or "" if they do not."""
    host_ports = port.get("hostPort", 0), other.get("hostPort", 0)
    host_ips = port.get("hostIP", ""), other.get("hostIP", "")
    if len(set(host_ports)) == len(set(host_ips)) == 1:
        return "duplicate"
    if not all(host_ports):
        return "overlapping"
    if len(set(host_ports)) == 1 and not all(host_ips):
        return "dangerously ambiguous"
    return ""


_FIELDS: Final = {"name": "", "hostPort": 0, "containerPort": 0, "protocol": "", "hostIP": ""}
"""The fields of a port in Go's order, with their zero values."""


def _port_text(port: ReadOnlyTree) -> str:
    """Format a port like a Go struct."""
    fields = (f"{name[0].upper()}{name[1:]}:{port.get(name, empty)}" for name, empty in _FIELDS.items())
    return f"{{{' '.join(fields)}}}"


def _names(placed: Iterable[Placed]) -> Iterator[str]:
    first: dict[str, Path] = {}
    for port, path in placed:
        name = port.get("name")
        if not name:
            continue
        if name in first:
            other = first[name]
            yield (
                f"{path}: duplicate port name {quote(name)} with {other}, "
                f"services and probes that select ports by name will use {other}"
            )
        else:
            first[name] = path


_BYTES: Final = ("memory", "ephemeral-storage")
SECCOMP_POD: Final = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP: Final = "container.seccomp.security.alpha.kubernetes.io/"
NO_SECCOMP: Final = 'non-functional in v1.27+; use the "seccompProfile" field instead'
_NO_APPARMOR: Final = 'deprecated since v1.30; use the "appArmorProfile" field instead'


def container_warnings(container: ReadOnlyTree, path: Path) -> Iterator[str]:
    resources = container.get("resources") or {}
    for name in _BYTES:
        for field in ("limits", "requests"):
            if name in resources.get(field, ()):
                yield from fractional_byte_warnings(resources[field], path.child("resources", field), (name,))
    env = container.get("env")
    if env and len(env) > 1:
        yield from _hidden_variables(env, path.child("env"))


def _hidden_variables(env: list[ReadOnlyTree], path: Path) -> Iterator[str]:
    """Warn of variables of one name, unless the later one refers to the earlier one."""
    seen = set()
    for index, variable in enumerate(env):
        name, value = variable.get("name", ""), variable.get("value", "")
        reference = f"$({name})"
        if name in seen and (
            variable.get("valueFrom") is not None or value == reference or reference not in value
        ):
            variable_path = path.index(index)
            yield f"{variable_path}: hides previous definition of {quote(name)}, which may be dropped when using apply"
        seen.add(name)


def annotation_warnings(
    container: ReadOnlyTree, annotations: Mapping[str, Any], path: Path, spec: ReadOnlyTree, *, in_pod: bool
) -> Iterator[str]:
    """Warn of annotations that name a container. AppArmor's are warned of in a pod when they become fields."""
    name, context = container.get("name", ""), container.get("securityContext") or {}
    seccomp, for_apparmor = _SECCOMP + name, APPARMOR_ANNOTATION_PREFIX + name
    if seccomp in annotations and "seccompProfile" not in context:
        yield f"{path.key(seccomp)}: {NO_SECCOMP}"
    if in_pod or for_apparmor not in annotations or "appArmorProfile" in context:
        return
    of_pod = (spec.get("securityContext") or {}).get("appArmorProfile")
    if of_pod is None or of_pod != apparmor_profile(annotations[for_apparmor]):
        yield f"{path.key(for_apparmor)}: {_NO_APPARMOR}"


# --- pods


def _warn_create(pod: ReadOnlyTree) -> Iterator[str]:
    yield from name_warnings(pod, _IN_HOSTNAME)
    yield from template_warnings(pod, ROOT, in_pod=True)


def _warn_status(new: ReadOnlyTree, _old: ReadOnlyTree) -> Iterator[str]:
    for field in ("podIPs", "hostIPs"):
        path = ROOT.child("status", field)
        for index, address in enumerate((new.get("status") or {}).get(field) or ()):
            yield from ip_warnings(address.get("ip", ""), path.index(index).child("ip"))


WARNINGS: Final = Warnings(create=_warn_create, subresources={"status": _warn_status})
