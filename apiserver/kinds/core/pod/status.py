"""Validation of a pod's status, of its container statuses and resource claim statuses."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from mockube.apimachinery import errors, names, quantity
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import CONDITION_POD_SCHEDULED
from mockube.apiserver.kinds.common import checks
from mockube.apiserver.kinds.common.addresses import check_ip, is_dual_stack, parse_sloppily
from mockube.apiserver.kinds.common.internal import internal
from mockube.apiserver.kinds.common.validation_context import is_before

from .context import LINUX, WINDOWS, os_of
from .lifecycle import ALWAYS, RESTART_ALL, restarts
from .security import check_id
from .validation import check_changed_annotations, spec_of

Statuses: TypeAlias = Sequence[ReadOnlyTree]


def _exit_code(status: ReadOnlyTree) -> int | None:
    """Return the exit code of a terminated container; None if it is not terminated."""
    ended = (status.get("state") or {}).get("terminated")
    return None if ended is None else ended.get("exitCode", 0)


def check_transitions(
    new: Statuses, old: Statuses, path: Path, may_restart: Callable[[str, int], bool]
) -> Iterator[FieldError]:
    """Check that terminated containers stay terminated, unless `may_restart` allows it for their name and exit code."""
    not_ended = {status.get("name", "") for status in new if _exit_code(status) is None}
    for index, status in enumerate(old):
        name, code = status.get("name", ""), _exit_code(status)
        if code is not None and name in not_ended and not may_restart(name, code):
            detail = "may not be transitioned to non-terminated state"
            yield errors.forbidden(path.index(index).child("state"), detail)


def refuse_all_codes(_name: str, _code: int) -> bool:
    return False


def restarting(spec: ReadOnlyTree, kind: str) -> Callable[[str, int], bool]:
    """Return a function that returns whether a container with a name and an exit code may restart."""
    containers = {container.get("name", ""): container for container in spec.get(kind) or ()}
    restarts_all = any(
        rule.get("action") == RESTART_ALL
        for of_kind in ("initContainers", "containers")
        for container in spec.get(of_kind) or ()
        for rule in container.get("restartPolicyRules", ())
    )
    policy = spec.get("restartPolicy") or ALWAYS
    return lambda name, code: (
        restarts_all or (name in containers and restarts(containers[name], policy, code))
    )


# --- users

_ANY_ID: Final = checks.between(0, 2**32 - 1)


def _check_uid(uid: int, path: Path) -> Iterable[FieldError]:
    """Check a user that a container runtime reports. Before 1.37, the users of specs are allowed."""
    return check_id(uid, path) if is_before("1.37") else _ANY_ID(uid, path)


_IDS: Final = checks.all_of(
    checks.field("uid", _check_uid, absent=0),
    checks.field("gid", check_id, absent=0),
    checks.field("supplementalGroups", checks.each_item(check_id), absent=()),
)


def _check_user(user: ReadOnlyTree, path: Path, os: str) -> Iterable[FieldError]:
    if user.get("linux") is None:
        return ()
    if os == WINDOWS:
        return (errors.forbidden(path.child("linux"), "cannot be set for a windows pod"),)
    return _IDS(user["linux"], path.child("linux")) if os == LINUX else ()


def check_users(statuses: Statuses, path: Path, os: str) -> Iterator[FieldError]:
    for index, status in enumerate(statuses):
        if status.get("user") is not None:
            yield from _check_user(status["user"], path.index(index).child("user"), os)


# --- resources

_CLAIM: Final = "claim:"
_OF_CLAIMS: Final = (
    "must match one of the container's resource claims as 'claim:<claimName>/<requestName>' when "
    "container.resources.claims[*].request is set or 'claim:<claimName>' when it is empty"
)
_OF_CLAIMS_BEFORE: Final = (
    "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or "
    "'claim:<claimName>' if request is empty"
)
_OF_REQUESTS: Final = "must match one of the container's resource requests"


def _claim(claim: ReadOnlyTree) -> str:
    request = claim.get("request")
    return f"{_CLAIM}{claim.get('name', '')}" + (f"/{request}" if request else "")


def _check_message(message: str, path: Path) -> Iterable[FieldError]:
    if not message:
        return (errors.required(path, "must be non-empty if specified"),)
    return checks.max_bytes(1024)(message, path)


_HEALTH: Final = checks.all_of(
    checks.field("health", checks.one_of("Healthy", "Unhealthy", "Unknown"), absent=""),
    checks.pointer("message", _check_message),
)


def _check_resources(resources: Iterable[ReadOnlyTree], path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, of_one in enumerate(resources):
        yield from _HEALTH(of_one, path.index(index))
        name = of_one.get("resourceID", "")
        if name in seen:
            yield errors.duplicate(path.index(index).child("resourceID"), name)
        seen.add(name)


def _check_known(
    name: str, path: Path, container: ReadOnlyTree | None, extended: ReadOnlyTree
) -> Iterator[FieldError]:
    """Check that a container requests the resource or claim. Statuses of unknown containers are not checked.

    `extended` is the status of the claim for extended resources.
    """
    if container is None:
        return
    resources: dict[str, Any] = container.get("resources") or {}
    is_claim = name.startswith(_CLAIM)
    known_names = map(_claim, resources.get("claims", ())) if is_claim else resources.get("requests", ())
    if name in known_names:
        return
    if not is_claim:
        yield errors.invalid(path, name, _OF_REQUESTS)
    elif is_before("1.37"):
        yield errors.invalid(path, name, _OF_CLAIMS_BEFORE)
    elif not _is_mapped(name, container, extended):
        yield errors.invalid(path, name, _OF_CLAIMS)


def _is_mapped(name: str, container: ReadOnlyTree, extended: ReadOnlyTree) -> bool:
    """Return whether the name is that of a request that was made for an extended resource of the container."""
    requests = (container.get("resources") or {}).get("requests") or {}
    return any(
        name == f"{_CLAIM}{extended.get('resourceClaimName')}/{mapping.get('requestName')}"
        and mapping.get("containerName") == container.get("name")
        and quantity.parse(requests.get(mapping.get("resourceName"), "0")).number != 0
        for mapping in extended.get("requestMappings") or ()
        if mapping.get("requestName") and extended.get("resourceClaimName")
    )


def check_allocated(
    statuses: Statuses, path: Path, containers: Sequence[ReadOnlyTree], extended: ReadOnlyTree
) -> Iterator[FieldError]:
    by_name = {container.get("name", ""): container for container in containers}
    for index, status in enumerate(statuses):
        container = by_name.get(status.get("name", ""))
        for resource_index, resource_status in enumerate(status.get("allocatedResourcesStatus", ())):
            item_path = path.index(index).child("allocatedResourcesStatus").index(resource_index)
            name = resource_status.get("name", "")
            yield from _check_known(name, item_path.child("name"), container, extended)
            yield from _check_resources(resource_status.get("resources", ()), item_path.child("resources"))


def check_nothing_allocated(statuses: Statuses, path: Path) -> Iterator[FieldError]:
    for index, status in enumerate(statuses):
        if status.get("allocatedResourcesStatus"):
            field_path = path.index(index).child("allocatedResourcesStatus")
            yield errors.forbidden(field_path, "must not be specified in container status")


_CLAIM_NAME: Final = checks.report(names.check_dns1123_subdomain)
_LABEL: Final = checks.report(names.check_dns1123_label)


def check_claim_statuses(status: ReadOnlyTree, spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    path = path.child("resourceClaimStatuses")
    claims = {claim.get("name", "") for claim in spec.get("resourceClaims", ())}
    seen: set[str] = set()
    for index, of_claim in enumerate(status.get("resourceClaimStatuses", ())):
        claim_path, name = path.index(index), of_claim.get("name", "")
        if name not in claims:
            problem = "must match the name of an entry in `spec.resourceClaims`"
            yield errors.invalid(claim_path.child("name"), name, problem)
        if name in seen:
            yield errors.duplicate(claim_path.child("name"), name)
        seen.add(name)
        yield from checks.pointer("resourceClaimName", _CLAIM_NAME)(of_claim, claim_path)


_NO_SUCH_RESOURCE: Final = (
    "must match the extended resource name of an entry in spec.initContainers.resources.requests or "
    "spec.containers.resources.requests"
)
_NO_SUCH_CONTAINER: Final = (
    "must match the name of an entry in spec.initContainers.name or spec.containers.name"
)
_MAPPED: Final = ("containerName", "resourceName", "requestName")


def check_extended_claim(status: ReadOnlyTree, spec: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    claim, path = status.get("extendedResourceClaimStatus"), path.child("extendedResourceClaimStatus")
    if claim is None:
        return
    mappings, field_path = claim.get("requestMappings") or (), path.child("requestMappings")
    if not mappings:
        yield errors.required(field_path, "at least one request mapping is required")
    seen: set[tuple[str, ...]] = set()
    for index, mapping in enumerate(mappings):
        yield from _check_mapping(mapping, field_path.index(index), spec)
        yield from _LABEL(mapping.get("requestName", ""), path.child("requestName"))
        key = tuple(mapping.get(name, "") for name in _MAPPED)
        if key in seen:
            for name in _MAPPED:
                yield errors.duplicate(field_path.index(index).child(name), mapping.get(name, ""))
        seen.add(key)
    yield from checks.require("resourceClaimName", _CLAIM_NAME)(claim, path)


def _check_mapping(mapping: ReadOnlyTree, path: Path, spec: ReadOnlyTree) -> Iterator[FieldError]:
    """Check the mapping of a container's extended resource requests to a claim."""
    containers = {
        container.get("name", ""): container
        for kind in ("initContainers", "containers")
        for container in spec.get(kind) or ()
    }
    container, resource = mapping.get("containerName", ""), mapping.get("resourceName", "")
    if container not in containers:
        yield errors.invalid(path.child("containerName"), container, _NO_SUCH_CONTAINER)
    elif resource not in ((containers[container].get("resources") or {}).get("requests") or ()):
        yield errors.invalid(path.child("resourceName"), resource, _NO_SUCH_RESOURCE)


_STATUS: Final = ROOT.child("status")
_CONTAINER_LISTS: Final = {"containerStatuses": "containers", "initContainerStatuses": "initContainers"}
"""The lists of container statuses, with the lists of their containers."""
_EPHEMERAL: Final = "ephemeralContainerStatuses"

_SUBDOMAIN: Final = checks.report(names.check_dns1123_subdomain)


def status_of(pod: ReadOnlyTree) -> ReadOnlyTree:
    return pod.get("status") or {}


def check_status_update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    yield from check_changed_annotations(new, old)
    yield from _CONDITIONS(status_of(new), _STATUS)
    yield from _check_nomination(new, old)
    yield from _OBSERVED(status_of(new), _STATUS)
    yield from checks.immutable(
        status_of(new).get("qosClass"), status_of(old).get("qosClass"), _STATUS.child("qosClass")
    )
    yield from _check_transitions(status_of(new), status_of(old), spec_of(old))
    yield from check_claim_statuses(status_of(new), spec_of(new), _STATUS)
    yield from check_extended_claim(status_of(new), spec_of(new), _STATUS)
    yield from _check_ips("podIPs", new, old)
    yield from _check_pod_ip(status_of(new))
    yield from _check_host_ip(status_of(new))
    yield from _check_ips("hostIPs", new, old)
    yield from _check_containers(status_of(new), spec_of(new))


# --- conditions and the nominated node

_OWN_CONDITIONS: Final = frozenset({CONDITION_POD_SCHEDULED, "Ready", "Initialized"})

_OBSERVED: Final = checks.optional(
    "observedGeneration",
    checks.require_that(lambda generation: generation >= 0, "must be a non-negative integer"),
)


def _check_type(condition: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    name = condition.get("type", "")
    return () if name in _OWN_CONDITIONS else checks.report(names.check_label_key)(name, path.child("Type"))


_CONDITIONS: Final = checks.field("conditions", checks.each_item(_OBSERVED, _check_type))


def _check_nomination(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    node, path = status_of(new).get("nominatedNodeName"), _STATUS.child("nominatedNodeName")
    if node and node != status_of(old).get("nominatedNodeName"):
        yield from _SUBDOMAIN(node, path)
        if spec_of(old).get("nodeName"):
            yield errors.forbidden(path, "may not be set on pods that are already bound to a node")


# --- addresses


def _check_pod_ip(status: ReadOnlyTree) -> Iterator[FieldError]:
    """Check that there is a first address if there are addresses. `podIP` has it: defaults have made them equal."""
    addresses, path = status.get("podIPs") or (), _STATUS.child("podIPs")
    if addresses and not addresses[0].get("ip") and not is_before("1.37"):
        value = [internal("core.PodIP", entry) for entry in addresses]
        yield errors.invalid(path, value, "podIP and podIPs must either both be set or both be unset")


def _check_host_ip(status: ReadOnlyTree) -> Iterator[FieldError]:
    addresses = status.get("hostIPs")
    if addresses and addresses[0].get("ip", "") != status.get("hostIP", ""):
        field_path = _STATUS.child("hostIPs").index(0).child("ip")
        yield errors.invalid(field_path, addresses[0].get("ip", ""), "must be equal to `hostIP`")


def _check_ips(name: str, new: ReadOnlyTree, old: ReadOnlyTree) -> Iterator[FieldError]:
    """Check that there is one IP of each family. Invalid IPs of the old status are allowed."""
    entries, path = status_of(new).get(name, ()), _STATUS.child(name)
    valid_old_ips = {entry.get("ip", "") for entry in status_of(old).get(name, ())}
    addresses = [entry.get("ip", "") for entry in entries]
    for index, address in enumerate(addresses):
        yield from check_ip(address, path.index(index), valid_old_ips)
    if len(addresses) < 2:
        return
    invalid_indexes = [index for index, address in enumerate(addresses) if parse_sloppily(address) is None]
    for index in invalid_indexes[:1]:
        problem = f"failed to check for dual stack with error:invalid IP[{index}]: {addresses[index]}"
        yield errors.internal(path, problem)
    if invalid_indexes or len(addresses) > 2 or not is_dual_stack(addresses):
        value = [internal("core.PodIP" if name == "podIPs" else "core.HostIP", entry) for entry in entries]
        yield errors.invalid(path, value, "may specify no more than one IP for each IP family")


# --- containers


def _check_transitions(new: ReadOnlyTree, old: ReadOnlyTree, spec: ReadOnlyTree) -> Iterator[FieldError]:
    may_restart = {name: restarting(spec, kind) for name, kind in _CONTAINER_LISTS.items()}
    for name, may in {**may_restart, _EPHEMERAL: refuse_all_codes}.items():
        yield from check_transitions(new.get(name, ()), old.get(name, ()), _STATUS.child(name), may)


def _check_containers(status: ReadOnlyTree, spec: ReadOnlyTree) -> Iterator[FieldError]:
    os = os_of(spec) or LINUX
    for name in (*_CONTAINER_LISTS, _EPHEMERAL):
        yield from check_users(status.get(name, ()), _STATUS.child(name), os)
    for name, kind in _CONTAINER_LISTS.items():
        containers = spec.get(kind) or ()
        extended = status.get("extendedResourceClaimStatus") or {}
        yield from check_allocated(status.get(name, ()), _STATUS.child(name), containers, extended)
    yield from check_nothing_allocated(status.get(_EPHEMERAL, ()), _STATUS.child(_EPHEMERAL))
