"""Whether and when a container is started again: its own policy, and what a change of its resources does to it."""

from collections.abc import Iterable, Iterator
from typing import Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.validation.pods.surroundings import Surroundings
from apiserver.validation.resource_names import CPU, MEMORY
from apiserver.validation.rules import Tree, chosen, each, every, field, no_more_than, one_of, pointer

ALWAYS: Final = "Always"
ON_FAILURE: Final = "OnFailure"
NEVER: Final = "Never"

_POLICIES: Final = one_of(ALWAYS, NEVER, ON_FAILURE)

_EXIT_CODES: Final = every(
    field("operator", one_of("In", "NotIn"), absent=""), field("values", no_more_than(255), absent=())
)


def _check_exit_codes(rule: Tree, path: Path) -> Iterable[FieldError]:
    if rule.get("exitCodes") is None:
        return (errors.required(path.child("exitCodes"), "must be specified"),)
    return pointer("exitCodes", _EXIT_CODES)(rule, path)


RESTART, RESTART_ALL = "Restart", "RestartAllContainers"

_RULES: Final = field(
    "restartPolicyRules",
    no_more_than(20),
    each(field("action", one_of(RESTART, RESTART_ALL), absent=""), _check_exit_codes),
    absent=(),
)


def check_restart_policy(container: Tree, path: Path) -> Iterator[FieldError]:
    yield from pointer("restartPolicy", _POLICIES)(container, path)
    if container.get("restartPolicyRules") and container.get("restartPolicy") is None:
        yield _no_policy(path)
    yield from _RULES(container, path)


def check_init_restart_policy(container: Tree, path: Path) -> Iterable[FieldError]:
    """Of an init container rules without a policy are not looked at."""
    if container.get("restartPolicy") is not None:
        return check_restart_policy(container, path)
    return (_no_policy(path),) if container.get("restartPolicyRules") else ()


def _no_policy(path: Path) -> FieldError:
    return errors.required(
        path.child("restartPolicy"), "must specify restartPolicy when restart rules are used"
    )


# --- starting again


def restarts(container: Tree, policy: str, code: int) -> bool:
    """Whether a container that ended with a code is started again, if its pod has a policy."""
    own = container.get("restartPolicy")
    if own is not None and _action(container, code) in (RESTART, RESTART_ALL):
        return True
    return {ON_FAILURE: code != 0, NEVER: False}.get(own or policy, True)


def _action(container: Tree, code: int) -> str | None:
    """What the first rule that is about a code says."""
    for rule in container.get("restartPolicyRules", ()):
        codes = rule.get("exitCodes") or {}
        is_among = code in codes.get("values", ())
        if {"In": is_among, "NotIn": not is_among}.get(codes.get("operator", ""), False):
            action: str = rule.get("action", "")
            return action
    return None


# --- resizing

NOT_REQUIRED, RESTART_CONTAINER = "NotRequired", "RestartContainer"

_RESOURCES: Final = chosen(CPU, MEMORY)
_RESTARTS: Final = chosen(NOT_REQUIRED, RESTART_CONTAINER)


def check_resize_policies(container: Tree, path: Path, around: Surroundings) -> Iterator[FieldError]:
    """Upstream tells of what is wrong with one of them at the path of all."""
    path = path.child("resizePolicy")
    seen: set[str] = set()
    for index, policy in enumerate(container.get("resizePolicy", ())):
        name, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if name in seen:
            yield errors.duplicate(path.index(index), name)
        seen.add(name)
        yield from _RESOURCES(name, path)
        yield from _RESTARTS(restart, path)
        if around.restart_policy == NEVER and restart != NOT_REQUIRED:
            problem = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            yield errors.invalid(path, restart, problem)
