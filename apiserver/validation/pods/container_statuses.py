"""Statuses of containers: who ended stays ended unless it is started again, and what each runs as and with."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.validation.pods.restarts import ALWAYS, RESTART_ALL, restarts
from apiserver.validation.pods.security import check_id
from apiserver.validation.pods.surroundings import LINUX, WINDOWS
from apiserver.validation.rules import Tree, each, every, field, no_longer_than, one_of, pointer

Statuses: TypeAlias = Sequence[Tree]


def _exit_code(status: Tree) -> int | None:
    """None: it has not ended."""
    ended = (status.get("state") or {}).get("terminated")
    return None if ended is None else ended.get("exitCode", 0)


def check_transitions(
    new: Statuses, old: Statuses, path: Path, may_restart: Callable[[str, int], bool]
) -> Iterator[FieldError]:
    """`may_restart` tells of a container that ended with an exit code."""
    not_ended = {status.get("name", "") for status in new if _exit_code(status) is None}
    for index, status in enumerate(old):
        name, code = status.get("name", ""), _exit_code(status)
        if code is not None and name in not_ended and not may_restart(name, code):
            detail = "may not be transitioned to non-terminated state"
            yield errors.forbidden(path.index(index).child("state"), detail)


def never(_name: str, _code: int) -> bool:
    return False


def restarting(spec: Tree, kind: str) -> Callable[[str, int], bool]:
    """Which containers of a kind may be started again after they ended."""
    containers = {container.get("name", ""): container for container in spec.get(kind) or ()}
    together = any(
        rule.get("action") == RESTART_ALL
        for of_kind in ("initContainers", "containers")
        for container in spec.get(of_kind) or ()
        for rule in container.get("restartPolicyRules", ())
    )
    policy = spec.get("restartPolicy") or ALWAYS
    return lambda name, code: together or (name in containers and restarts(containers[name], policy, code))


# --- users

_IDS: Final = every(
    field("uid", check_id, absent=0),
    field("gid", check_id, absent=0),
    field("supplementalGroups", each(check_id), absent=()),
)


def _check_user(user: Tree, path: Path, os: str) -> Iterable[FieldError]:
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
    "must match one of the container's resource claims in a format 'claim:<claimName>/<request>' or "
    "'claim:<claimName>' if request is empty"
)
_OF_REQUESTS: Final = "must match one of the container's resource requests"


def _claim(claim: Tree) -> str:
    request = claim.get("request")
    return f"{_CLAIM}{claim.get('name', '')}" + (f"/{request}" if request else "")


def _check_message(message: str, path: Path) -> Iterable[FieldError]:
    if not message:
        return (errors.required(path, "must be non-empty if specified"),)
    return no_longer_than(1024)(message, path)


_HEALTH: Final = every(
    field("health", one_of("Healthy", "Unhealthy", "Unknown"), absent=""), pointer("message", _check_message)
)


def _check_resources(resources: Iterable[Tree], path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, of_one in enumerate(resources):
        yield from _HEALTH(of_one, path.index(index))
        name = of_one.get("resourceID", "")
        if name in seen:
            yield errors.duplicate(path.index(index).child("resourceID"), name)
        seen.add(name)


def _check_known(name: str, path: Path, container: Tree | None) -> Iterator[FieldError]:
    """Statuses of containers that are not there are let be."""
    resources: dict[str, Any] = (container or {}).get("resources") or {}
    is_claim = name.startswith(_CLAIM)
    known = map(_claim, resources.get("claims", ())) if is_claim else resources.get("requests", ())
    if container is not None and name not in known:
        yield errors.invalid(path, name, _OF_CLAIMS if is_claim else _OF_REQUESTS)


def check_allocated(statuses: Statuses, path: Path, containers: Sequence[Tree]) -> Iterator[FieldError]:
    by_name = {container.get("name", ""): container for container in containers}
    for index, status in enumerate(statuses):
        container = by_name.get(status.get("name", ""))
        for place, of_resource in enumerate(status.get("allocatedResourcesStatus", ())):
            at = path.index(index).child("allocatedResourcesStatus").index(place)
            yield from _check_known(of_resource.get("name", ""), at.child("name"), container)
            yield from _check_resources(of_resource.get("resources", ()), at.child("resources"))


def check_nothing_allocated(statuses: Statuses, path: Path) -> Iterator[FieldError]:
    for index, status in enumerate(statuses):
        if status.get("allocatedResourcesStatus"):
            at = path.index(index).child("allocatedResourcesStatus")
            yield errors.forbidden(at, "must not be specified in container status")
