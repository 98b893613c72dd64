"""Probes of a container, and the hooks of its life: actions that the kubelet carries out."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.paths import Path
from apiserver.validation.pods.surroundings import Surroundings
from apiserver.validation.ports import check_port
from apiserver.validation.rules import (
    Check,
    Tree,
    every,
    field,
    member,
    must,
    non_negative,
    one_of,
    pointer,
    required,
)


def _check_headers(headers: Iterable[Tree] | None, path: Path) -> Iterator[FieldError]:
    for header in headers or ():
        name = header.get("name", "")
        for problem in names.check_http_header_name(name):
            yield errors.invalid(path, name, problem)


_PORT: Final = field("port", check_port, absent=0)

_HTTP_GET: Final = every(
    required("path"),
    _PORT,
    field("scheme", one_of("HTTP", "HTTPS"), absent=""),
    field("httpHeaders", _check_headers),
)
_ACTIONS: Final[Mapping[str, Check]] = {"exec": required("command"), "httpGet": _HTTP_GET, "tcpSocket": _PORT}


def _action(actions: Mapping[str, Check]) -> Check:
    return member(
        actions, missing="must specify a handler type", surplus="may not specify more than 1 handler type"
    )


# --- probes

_CHECK_PROBE: Final = every(
    _action({**_ACTIONS, "grpc": _PORT}),
    *(
        field(name, non_negative)
        for name in (
            "initialDelaySeconds",
            "timeoutSeconds",
            "periodSeconds",
            "successThreshold",
            "failureThreshold",
        )
    ),
    pointer("terminationGracePeriodSeconds", must(lambda seconds: seconds > 0, "must be greater than 0")),
)
_SUCCEEDS_ONCE: Final = field("successThreshold", must(lambda count: count == 1, "must be 1"), absent=0)
_ENDS_NOTHING: Final = pointer(
    "terminationGracePeriodSeconds", must(lambda _: False, "must not be set for readinessProbes")
)

check_probes: Final = every(
    pointer("livenessProbe", _CHECK_PROBE, _SUCCEEDS_ONCE),
    pointer("readinessProbe", _CHECK_PROBE, _ENDS_NOTHING),
    pointer("startupProbe", _CHECK_PROBE, _SUCCEEDS_ONCE),
)


# --- hooks


def _sleep(grace_period: int | None) -> Check:
    """A pod's grace period may be missing: that is told of elsewhere."""

    def check(action: Tree, path: Path) -> Iterable[FieldError]:
        seconds = action.get("seconds", 0)
        if grace_period is None or 0 <= seconds <= grace_period:
            return ()
        problem = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_period})"
        return (errors.invalid(path, seconds, problem),)

    return check


def check_lifecycle(container: Tree, path: Path, around: Surroundings) -> Iterable[FieldError]:
    if container.get("lifecycle") is None:
        return ()
    hook = _action({**_ACTIONS, "sleep": _sleep(around.grace_period)})
    return pointer("lifecycle", pointer("postStart", hook), pointer("preStop", hook))(container, path)
