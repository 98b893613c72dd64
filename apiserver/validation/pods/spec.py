"""A pod's spec: all its rules, in upstream's order."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final, TypeAlias

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.paths import ROOT, Path
from apiserver.validation.labels import check_label_name, check_labels
from apiserver.validation.pods.affinity import check_affinity
from apiserver.validation.pods.claims import check_resource_claims, claim_names
from apiserver.validation.pods.containers import (
    check_containers,
    check_ephemeral_containers,
    check_init_containers,
)
from apiserver.validation.pods.env import check_file_volumes
from apiserver.validation.pods.leniency import STRICT, Leniency
from apiserver.validation.pods.likeness import likeness, remembered_by_likeness
from apiserver.validation.pods.network import (
    check_dns_config,
    check_dns_policy,
    check_host_aliases,
    check_host_users,
    check_hostname_override,
)
from apiserver.validation.pods.ports import check_host_network_ports
from apiserver.validation.pods.resources import check_pod_resources, check_requirements
from apiserver.validation.pods.security import check_pod_security_context
from apiserver.validation.pods.spreading import check_spread_constraints
from apiserver.validation.pods.surroundings import LINUX, WINDOWS, Surroundings, containers_of
from apiserver.validation.pods.tolerations import check_tolerations
from apiserver.validation.pods.volumes import check_volumes
from apiserver.validation.pods.windows import check_host_processes, check_linux_pod, check_windows_pod
from apiserver.validation.rules import (
    Check,
    Tree,
    between,
    chosen,
    each,
    every,
    field,
    one_of,
    optional,
    pointer,
    required,
    valid,
)

Part: TypeAlias = Callable[[Surroundings, Path], Iterable[FieldError]]
"""Checks a part of a spec, at the spec's path."""

ALWAYS, ON_FAILURE, NEVER = "Always", "OnFailure", "Never"

_LABEL: Final = valid(names.check_dns1123_label)
_SUBDOMAIN: Final = valid(names.check_dns1123_subdomain)


def alone(*checks: Check) -> Part:
    """Of fields that depend on nothing else."""
    check = every(*checks)
    return lambda around, path: check(around.spec, path)


# --- parts that have no module of their own


def _check_affinity(around: Surroundings, path: Path) -> Iterable[FieldError]:
    affinity = around.spec.get("affinity")
    return () if affinity is None else check_affinity(affinity, path.child("affinity"), around.leniency)


def _check_spreading(around: Surroundings, path: Path) -> Iterable[FieldError]:
    constraints = around.spec.get("topologySpreadConstraints", ())
    return check_spread_constraints(constraints, path.child("topologySpreadConstraints"), around.leniency)


def _check_tolerations(around: Surroundings, path: Path) -> Iterable[FieldError]:
    tolerations = around.spec.get("tolerations", ())
    return check_tolerations(tolerations, path.child("tolerations"), compared=around.leniency.comparisons)


def _check_overhead(around: Surroundings, path: Path) -> Iterable[FieldError]:
    """What running a pod costs by itself is checked as if it were limits."""
    overhead = around.spec.get("overhead")
    return check_requirements({"limits": overhead}, path.child("overhead"), around) if overhead else ()


def _check_gates(gates: Iterable[Tree] | None, path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, gate in enumerate(gates or ()):
        name = gate.get("name", "")
        yield from check_label_name(name, path.index(index))
        if name in seen:
            yield errors.duplicate(path.index(index), name)
        seen.add(name)


def _check_os(around: Surroundings, path: Path) -> Iterable[FieldError]:
    os = around.spec.get("os")
    if os is None:
        return ()
    if not os.get("name"):
        return (errors.required(path.child("os", "name")),)
    check = {LINUX: check_linux_pod, WINDOWS: check_windows_pod}.get(os["name"])
    if check is None:
        return (errors.not_supported(path.child("os"), os["name"], (LINUX, WINDOWS)),)
    return check(around.spec, path)


def _check_file_variables(around: Surroundings, path: Path) -> Iterator[FieldError]:
    volumes = around.spec.get("volumes", ())
    for container, at in containers_of(around.spec, path):
        yield from check_file_volumes(volumes, container.get("env", ()), at.child("env"))


# --- all of it

_PARTS: Final[tuple[Part, ...]] = (
    check_containers,
    check_init_containers,
    check_ephemeral_containers,
    check_pod_resources,
    check_host_network_ports,
    alone(
        required("restartPolicy", one_of(ALWAYS, ON_FAILURE, NEVER)),
        check_dns_policy,
        field("nodeSelector", check_labels),
    ),
    check_pod_security_context,
    _check_affinity,
    alone(
        check_dns_config,
        field("readinessGates", each(field("conditionType", check_label_name, absent=""))),
        field("schedulingGates", _check_gates),
    ),
    _check_spreading,
    check_host_processes,
    check_host_users,
    alone(
        check_hostname_override,
        optional("serviceAccountName", _SUBDOMAIN),
        optional("nodeName", _SUBDOMAIN),
        pointer("activeDeadlineSeconds", between(1, 2**31 - 1)),
        optional("hostname", _LABEL),
        optional("subdomain", _LABEL),
    ),
    _check_tolerations,
    alone(
        field("hostAliases", check_host_aliases),
        optional("priorityClassName", _SUBDOMAIN),
        pointer("runtimeClassName", _SUBDOMAIN),
        pointer("preemptionPolicy", chosen("PreemptLowerPriority", NEVER)),
    ),
    _check_overhead,
    _check_os,
    _check_file_variables,
)


_BY_METADATA: Final = (b'"ephemeral":', b'"resourceClaims":')
"""In the text of a spec: what is right or wrong by the pod's metadata."""


def _is_right(metadata: Tree | None, spec: Tree) -> bool:
    return not any(_check_all(spec, metadata, ROOT, STRICT))


_IS_RIGHT_IN_POD: Final = remembered_by_likeness(partial(_is_right, {}))
_IS_RIGHT_IN_TEMPLATE: Final = remembered_by_likeness(partial(_is_right, None))


def check_pod_spec(spec: Tree, metadata: Tree | None, path: Path, leniency: Leniency) -> Iterable[FieldError]:
    """`metadata` is that of a real pod; None in a template. A spec that was right lately is not looked at again."""
    if leniency == STRICT:
        text, is_right = likeness(spec), _IS_RIGHT_IN_TEMPLATE if metadata is None else _IS_RIGHT_IN_POD
        if not any(part in text for part in _BY_METADATA) and is_right(text):
            return ()
    return _check_all(spec, metadata, path, leniency)


def _check_all(spec: Tree, metadata: Tree | None, path: Path, leniency: Leniency) -> Iterator[FieldError]:
    if spec.get("terminationGracePeriodSeconds") is None:
        yield errors.required(path.child("terminationGracePeriodSeconds"))
    volumes, wrong_volumes = check_volumes(spec, metadata, path, leniency)
    yield from wrong_volumes
    yield from check_resource_claims(spec, metadata, path)
    around = Surroundings(
        spec=spec, metadata=metadata, volumes=volumes, claims=claim_names(spec), leniency=leniency
    )
    for part in _PARTS:
        yield from part(around, path)
