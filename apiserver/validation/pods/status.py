"""Updates of a pod's status, which its kubelet and the scheduler write."""

from collections.abc import Iterable, Iterator
from typing import Final

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.paths import ROOT, Path
from apimachinery.wellknown import CONDITION_POD_SCHEDULED
from apiserver.validation.addresses import check_ip, is_dual_stack, parse_sloppily
from apiserver.validation.internal import internal
from apiserver.validation.pods import container_statuses as of_containers
from apiserver.validation.pods.claim_statuses import check_claim_statuses, check_extended_claim
from apiserver.validation.pods.pods import check_changed_annotations, spec_of
from apiserver.validation.pods.surroundings import LINUX, os_of
from apiserver.validation.rules import Tree, each, field, immutable, must, optional, valid

_STATUS: Final = ROOT.child("status")
_LASTING: Final = {"containerStatuses": "containers", "initContainerStatuses": "initContainers"}
"""Lists of statuses, by the containers that they are of."""
_EPHEMERAL: Final = "ephemeralContainerStatuses"

_SUBDOMAIN: Final = valid(names.check_dns1123_subdomain)


def status_of(pod: Tree) -> Tree:
    return pod.get("status") or {}


def check_status_update(new: Tree, old: Tree) -> Iterator[FieldError]:
    yield from check_changed_annotations(new, old)
    yield from _CONDITIONS(status_of(new), _STATUS)
    yield from _check_nomination(new, old)
    yield from _OBSERVED(status_of(new), _STATUS)
    yield from immutable(
        status_of(new).get("qosClass"), status_of(old).get("qosClass"), _STATUS.child("qosClass")
    )
    yield from _check_transitions(status_of(new), status_of(old), spec_of(old))
    yield from check_claim_statuses(status_of(new), spec_of(new), _STATUS)
    yield from check_extended_claim(status_of(new), spec_of(new), _STATUS)
    yield from _check_ips("podIPs", new, old)
    yield from _check_host_ip(status_of(new))
    yield from _check_ips("hostIPs", new, old)
    yield from _check_containers(status_of(new), spec_of(new))


# --- conditions, and the node that the scheduler has in mind

_OWN_CONDITIONS: Final = frozenset({CONDITION_POD_SCHEDULED, "Ready", "Initialized"})

_OBSERVED: Final = optional(
    "observedGeneration", must(lambda generation: generation >= 0, "must be a non-negative integer")
)


def _check_type(condition: Tree, path: Path) -> Iterable[FieldError]:
    name = condition.get("type", "")
    return () if name in _OWN_CONDITIONS else valid(names.check_label_key)(name, path.child("Type"))


_CONDITIONS: Final = field("conditions", each(_OBSERVED, _check_type))


def _check_nomination(new: Tree, old: Tree) -> Iterator[FieldError]:
    node, path = status_of(new).get("nominatedNodeName"), _STATUS.child("nominatedNodeName")
    if node and node != status_of(old).get("nominatedNodeName"):
        yield from _SUBDOMAIN(node, path)
        if spec_of(old).get("nodeName"):
            yield errors.forbidden(path, "may not be set on pods that are already bound to a node")


# --- addresses


def _check_host_ip(status: Tree) -> Iterator[FieldError]:
    addresses = status.get("hostIPs")
    if addresses and addresses[0].get("ip", "") != status.get("hostIP", ""):
        at = _STATUS.child("hostIPs").index(0).child("ip")
        yield errors.invalid(at, addresses[0].get("ip", ""), "must be equal to `hostIP`")


def _check_ips(name: str, new: Tree, old: Tree) -> Iterator[FieldError]:
    """One of each family. Those that were there stay, whatever they are."""
    there, path = status_of(new).get(name, ()), _STATUS.child(name)
    kept = [one.get("ip", "") for one in status_of(old).get(name, ())]
    addresses = [one.get("ip", "") for one in there]
    for index, address in enumerate(addresses):
        yield from check_ip(address, path.index(index), kept)
    if len(addresses) < 2:
        return
    wrong = [index for index, address in enumerate(addresses) if parse_sloppily(address) is None]
    for index in wrong[:1]:
        problem = f"failed to check for dual stack with error:invalid IP[{index}]: {addresses[index]}"
        yield errors.internal(path, problem)
    if wrong or len(addresses) > 2 or not is_dual_stack(addresses):
        shown = [internal("core.PodIP" if name == "podIPs" else "core.HostIP", one) for one in there]
        yield errors.invalid(path, shown, "may specify no more than one IP for each IP family")


# --- containers


def _check_transitions(new: Tree, old: Tree, spec: Tree) -> Iterator[FieldError]:
    may_restart = {name: of_containers.restarting(spec, kind) for name, kind in _LASTING.items()}
    for name, may in {**may_restart, _EPHEMERAL: of_containers.never}.items():
        yield from of_containers.check_transitions(
            new.get(name, ()), old.get(name, ()), _STATUS.child(name), may
        )


def _check_containers(status: Tree, spec: Tree) -> Iterator[FieldError]:
    os = os_of(spec) or LINUX
    for name in (*_LASTING, _EPHEMERAL):
        yield from of_containers.check_users(status.get(name, ()), _STATUS.child(name), os)
    for name, kind in _LASTING.items():
        containers = spec.get(kind) or ()
        yield from of_containers.check_allocated(status.get(name, ()), _STATUS.child(name), containers)
    yield from of_containers.check_nothing_allocated(status.get(_EPHEMERAL, ()), _STATUS.child(_EPHEMERAL))
