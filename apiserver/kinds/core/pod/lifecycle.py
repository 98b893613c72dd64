"""Validation of restart policies, resize policies, probes and lifecycle hooks."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apiserver.kinds.common import checks
from mockube.apiserver.kinds.common.addresses import check_port
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.resource_names import CPU, MEMORY

from .context import PodContext

ALWAYS: Final = "Always"
ON_FAILURE: Final = "OnFailure"
NEVER: Final = "Never"

_POLICIES: Final = checks.one_of(ALWAYS, NEVER, ON_FAILURE)

_EXIT_CODES: Final = checks.all_of(
    checks.field("operator", checks.one_of("In", "NotIn"), absent=""),
    checks.field("values", checks.max_items(255), absent=()),
)


def _check_exit_codes(rule: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    if rule.get("exitCodes") is None:
        return (errors.required(path.child("exitCodes"), "must be specified"),)
    return checks.pointer("exitCodes", _EXIT_CODES)(rule, path)


RESTART, RESTART_ALL = "Restart", "RestartAllContainers"

_RULES: Final = checks.field(
    "restartPolicyRules",
    checks.max_items(20),
    checks.each_item(
        checks.field("action", checks.one_of(RESTART, RESTART_ALL), absent=""), _check_exit_codes
    ),
    absent=(),
)


def check_restart_policy(container: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    yield from checks.pointer("restartPolicy", _POLICIES)(container, path)
    if container.get("restartPolicyRules") and container.get("restartPolicy") is None:
        yield _no_policy(path)
    yield from _RULES(container, path)


def check_init_restart_policy(container: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    """Check the restart policy of an init container. Rules without a policy are refused and not checked."""
    if container.get("restartPolicy") is not None:
        return check_restart_policy(container, path)
    return (_no_policy(path),) if container.get("restartPolicyRules") else ()


def _no_policy(path: Path) -> FieldError:
    return errors.required(
        path.child("restartPolicy"), "must specify restartPolicy when restart rules are used"
    )


# --- starting again


def restarts(container: ReadOnlyTree, policy: str, code: int) -> bool:
    """Return whether a container that ended with an exit code is restarted; `policy` is the pod's."""
    container_policy = container.get("restartPolicy")
    if container_policy is not None and _restart_action(container, code) in (RESTART, RESTART_ALL):
        return True
    return {ON_FAILURE: code != 0, NEVER: False}.get(container_policy or policy, True)


def _restart_action(container: ReadOnlyTree, code: int) -> str | None:
    """Return the action of the first rule that matches an exit code."""
    for rule in container.get("restartPolicyRules", ()):
        codes = rule.get("exitCodes") or {}
        is_among = code in codes.get("values", ())
        if {"In": is_among, "NotIn": not is_among}.get(codes.get("operator", ""), False):
            action: str = rule.get("action", "")
            return action
    return None


# --- resizing

NOT_REQUIRED, RESTART_CONTAINER = "NotRequired", "RestartContainer"

_RESOURCES: Final = checks.required_one_of(CPU, MEMORY)
_RESTARTS: Final = checks.required_one_of(NOT_REQUIRED, RESTART_CONTAINER)


def check_resize_policies(
    container: ReadOnlyTree, path: Path, pod_context: PodContext
) -> Iterator[FieldError]:
    """Check the resize policies. As upstream, errors of one policy have the path of the list."""
    path = path.child("resizePolicy")
    seen: set[str] = set()
    for index, policy in enumerate(container.get("resizePolicy", ())):
        name, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if name in seen:
            yield errors.duplicate(path.index(index), name)
        seen.add(name)
        yield from _RESOURCES(name, path)
        yield from _RESTARTS(restart, path)
        if pod_context.restart_policy == NEVER and restart != NOT_REQUIRED:
            problem = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            yield errors.invalid(path, restart, problem)


def _check_headers(headers: Iterable[ReadOnlyTree] | None, path: Path) -> Iterator[FieldError]:
    for header in headers or ():
        name = header.get("name", "")
        for problem in names.check_http_header_name(name):
            yield errors.invalid(path, name, problem)


_PORT: Final = checks.field("port", check_port, absent=0)

_PROTOCOLS: Final = checks.one_of("HTTP1", "HTTP2")


def _check_protocol(action: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    protocol, field_path = action.get("protocol"), path.child("protocol")
    if protocol != "HTTP2":
        return () if protocol is None else _PROTOCOLS(protocol, field_path)
    if action.get("scheme") != "HTTP":
        return (errors.invalid(field_path, protocol, "is only supported with HTTP (H2C)"),)
    host = action.get("host")
    problem = 'must be empty when `protocol` is "HTTP2"'
    return (errors.invalid(path.child("host"), host, problem),) if host else ()


_HTTP_GET: Final = checks.all_of(
    checks.require("path"),
    _PORT,
    checks.field("scheme", checks.one_of("HTTP", "HTTPS"), absent=""),
    checks.field("httpHeaders", _check_headers),
    _check_protocol,
)
_GRPC: Final = checks.all_of(_PORT, checks.pointer("mode", checks.one_of("Plaintext", "TLS")))
_ACTIONS: Final[Mapping[str, Check]] = {
    "exec": checks.require("command"),
    "httpGet": _HTTP_GET,
    "tcpSocket": _PORT,
}


def _action(actions: Mapping[str, Check]) -> Check:
    return checks.member(
        actions, missing="must specify a handler type", surplus="may not specify more than 1 handler type"
    )


# --- probes

_CHECK_PROBE: Final = checks.all_of(
    _action({**_ACTIONS, "grpc": _GRPC}),
    *(
        checks.field(name, checks.non_negative)
        for name in (
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        )
    ),
    checks.pointer(
        "terminationGracePeriodSeconds",
        checks.require_that(lambda seconds: seconds > 0, "must be greater than 0"),
    ),
)
_SUCCEEDS_ONCE: Final = checks.field(
    "successThreshold", checks.require_that(lambda count: count == 1, "must be 1"), absent=0
)
_ENDS_NOTHING: Final = checks.pointer(
    "terminationGracePeriodSeconds",
    checks.require_that(lambda _: False, "must not be set for readinessProbes"),
)

check_probes: Final = checks.all_of(
    checks.pointer("livenessProbe", _CHECK_PROBE, _SUCCEEDS_ONCE),
    checks.pointer("readinessProbe", _CHECK_PROBE, _ENDS_NOTHING),
    checks.pointer("startupProbe", _CHECK_PROBE, _SUCCEEDS_ONCE),
)


# --- hooks


def _sleep(grace_period: int | None) -> Check:
    """Return the check of a sleep action. A missing grace period of the pod is reported elsewhere."""

    def check(action: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
        seconds = action.get("seconds", 0)
        if grace_period is None or 0 <= seconds <= grace_period:
            return ()
        problem = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_period})"
        return (errors.invalid(path, seconds, problem),)

    return check


def check_lifecycle(container: ReadOnlyTree, path: Path, pod_context: PodContext) -> Iterable[FieldError]:
    if container.get("lifecycle") is None:
        return ()
    hook = _action({**_ACTIONS, "sleep": _sleep(pod_context.grace_period)})
    return checks.pointer("lifecycle", checks.pointer("postStart", hook), checks.pointer("preStop", hook))(
        container, path
    )
