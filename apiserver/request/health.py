"""The health endpoints /healthz, /livez and /readyz, and a page for each of their checks."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeAlias

from mockube.apimachinery import gotext, wellknown
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.status import Timeout
from mockube.apiserver.background_tasks import TASKS, check_name, is_restarted
from mockube.apiserver.metrics.requests import Route
from mockube.apiserver.registry.registry import Backend
from mockube.component_base.clock import Clock
from mockube.component_base.metrics import MetricsRegistry
from mockube.component_base.process_metrics import HEALTH_CHECK, HEALTH_CHECKS
from mockube.etcd.errors import KVError

from .limits import Deadlines
from .page import Page, Pages
from .request import Request
from .response import Response, text_response

LOG: Final = logging.getLogger(__name__)

Check: TypeAlias = Callable[[], Awaitable[str]]
"""Returns why the server is unhealthy; "" if it is healthy."""

MAX_LAG_SECONDS: Final = 10.0
"""The lag of the watch cache behind the store from which on the server is not ready."""
CHECK_SECONDS: Final = 2.0
"""How long a check may take, as upstream's checks of etcd."""
ENDPOINTS = ("healthz", "livez", "readyz")
NAMESPACE_OBJECTS_CHECK: Final = "namespace-objects"
"""A check of ours: whether a controller manager has created what pods in namespace default need."""
_NAMESPACE_OBJECTS: Final = (
    (GroupResource("", "serviceaccounts"), "default"),
    (GroupResource("", "configmaps"), "kube-root-ca.crt"),
)
_OWN_CHECKS: Final = frozenset({NAMESPACE_OBJECTS_CHECK, *map(check_name, TASKS)})
"""The checks that upstream does not have: they are listed while they fail."""
ONLY_FOR_READINESS = frozenset(
    {
        "shutdown",
        "informer-sync",
        "etcd-readiness",
        *(check_name(name) for name in TASKS if is_restarted(name)),
    }
)
"""Checks that may recover without a restart, so /livez omits them."""
NOT_FOR_READINESS = frozenset({"loopback-serving-certificate"})
_EXCLUDED_CHECKS: Final[Mapping[str, frozenset[str]]] = {
    "healthz": ONLY_FOR_READINESS,  # envtest waits for it
    "livez": ONLY_FOR_READINESS | {NAMESPACE_OBJECTS_CHECK},
    "readyz": NOT_FOR_READINESS,
}
_FLOW_CONTROL_HOOKS: Final = (
    "poststarthook/priority-and-fairness-config-consumer",
    "poststarthook/priority-and-fairness-filter",
)
_IN_FLIGHT_HOOK: Final = "poststarthook/max-in-flight-filter"
"""The hook of a server without priority and fairness, in their place."""
ROLES_HOOK: Final = "poststarthook/rbac/bootstrap-roles"
HOOKS: Final[Sequence[str]] = (
    "poststarthook/start-apiserver-admission-initializer",
    "poststarthook/generic-apiserver-start-informers",
    *_FLOW_CONTROL_HOOKS,
    "poststarthook/storage-object-count-tracker-hook",
    "poststarthook/start-apiextensions-informers",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/start-system-namespaces-controller",
    "poststarthook/peer-endpoint-reconciler-controller",
    "poststarthook/start-cluster-authentication-info-controller",
    "poststarthook/start-kube-apiserver-identity-lease-controller",
    "poststarthook/start-kube-apiserver-identity-lease-garbage-collector",
    "poststarthook/storage-readiness",
    "poststarthook/start-legacy-token-tracking-controller",
    "poststarthook/start-service-ip-repair-controllers",
    ROLES_HOOK,
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "poststarthook/priority-and-fairness-config-producer",
    "poststarthook/bootstrap-controller",
    "poststarthook/start-kubernetes-service-cidr-controller",
    "poststarthook/start-kube-aggregator-informers",
    "poststarthook/apiservice-status-local-available-controller",
    "poststarthook/apiservice-status-remote-available-controller",
    "poststarthook/apiservice-registration-controller",
    "poststarthook/apiservice-discovery-controller",
    "poststarthook/kube-apiserver-autoregistration",
    "autoregister-completion",
    "poststarthook/apiservice-openapi-controller",
    "poststarthook/apiservice-openapiv3-controller",
)
"""kube-apiserver's post-start hook checks, in its order."""


async def ping() -> str:
    """Report that the server is healthy: it serves this request."""
    return ""


def is_own_check(path: str) -> bool:
    """Return whether a path is that of a check which upstream does not have."""
    endpoint, _, name = path.removeprefix("/").partition("/")
    return endpoint in ENDPOINTS and name in _OWN_CHECKS


class HealthResults:
    """The results of each check, by endpoint."""

    def __init__(self) -> None:
        self.metrics = MetricsRegistry()
        """Those of upstream's /metrics/slis."""
        self._last = self.metrics.numbers(HEALTH_CHECK)
        self._total = self.metrics.numbers(HEALTH_CHECKS)

    def add(self, name: str, endpoint: str, *, healthy: bool) -> None:
        self._last.set(int(healthy), name, endpoint)
        self._total.add(1, name, endpoint, "success" if healthy else "error")


class HealthChecks:
    """The health checks of a server: their pages, and the metrics of their results."""

    def __init__(self, checks: Mapping[str, Check], clock: Clock) -> None:
        results, deadlines = HealthResults(), Deadlines(clock)
        guarded_checks = {name: _guard(name, check, deadlines) for name, check in checks.items()}
        self.pages = _health_pages(guarded_checks, results)
        self.metrics = results.metrics


def _guard(name: str, check: Check, deadlines: Deadlines) -> Check:
    """Return a check that fails if this one raises an error or takes too long; the first of such failures is logged."""
    is_broken = False

    async def problem() -> str:
        nonlocal is_broken
        try:
            result = await deadlines.within(CHECK_SECONDS, check())
        except Exception as error:
            is_late = isinstance(error, Timeout)
            result = (
                f"no result within {CHECK_SECONDS:g} s" if is_late else f"{type(error).__name__}: {error}"
            )
            if not is_broken:
                LOG.exception("The health check %r failed: %s", name, result)
            is_broken = True
        else:
            is_broken = False
        return result

    return problem


def server_checks(  # noqa: PLR0913 - each is a source of checks
    backend: Backend,
    *,
    is_started: Callable[[], bool],
    is_stopping: Callable[[], bool],
    roles_problem: Check | None,
    task_problem: Callable[[str], str],
    has_flow_control: bool = True,
    awaits_controllers: bool = False,
) -> Mapping[str, Check]:
    """Return every check of a server, in upstream's order. Without RBAC there is no check of the bootstrap roles."""

    def task(name: str) -> Check:
        async def check() -> str:
            return task_problem(name)

        return check

    async def shutdown() -> str:
        return "process is shutting down" if is_stopping() else ""

    async def check_started() -> str:
        return "" if is_started() else "not finished"

    names = [*HOOKS]
    if not has_flow_control:
        first = HOOKS.index(_FLOW_CONTROL_HOOKS[0])
        names[first : first + len(_FLOW_CONTROL_HOOKS)] = [_IN_FLIGHT_HOOK]
    hooks: dict[str, Check] = dict.fromkeys(names, check_started)
    if roles_problem is None:
        del hooks[ROLES_HOOK]
    else:
        hooks[ROLES_HOOK] = roles_problem
    return {
        "ping": ping,
        "log": ping,
        "loopback-serving-certificate": check_started,
        "etcd": store_check(backend),
        "etcd-readiness": writable_store_check(backend),
        "informer-sync": watch_cache_check(backend),
        **hooks,
        **({NAMESPACE_OBJECTS_CHECK: namespace_objects_check(backend)} if awaits_controllers else {}),
        "shutdown": shutdown,
        **{check_name(name): task(name) for name in TASKS},
    }


def namespace_objects_check(backend: Backend) -> Check:
    """Return a check that fails until the objects exist for the first time: their deletion makes no server unready."""
    is_done = False

    async def check() -> str:
        nonlocal is_done
        missing = [
            f"{resource.resource} {name!r} in namespace {wellknown.NAMESPACE_DEFAULT!r} does not exist yet"
            for resource, name in _NAMESPACE_OBJECTS
            if not is_done and backend.find_cached(resource, wellknown.NAMESPACE_DEFAULT, name) is None
        ]
        is_done = not missing
        return "; ".join(missing)

    return check


def _health_pages(checks: Mapping[str, Check], results: HealthResults) -> Pages:
    pages: dict[str, Page] = {}
    for endpoint in ENDPOINTS:
        endpoint_checks = {
            name: check for name, check in checks.items() if name not in _EXCLUDED_CHECKS[endpoint]
        }
        pages[f"/{endpoint}"] = _summary_page(endpoint, endpoint_checks, results)
        for name, check in endpoint_checks.items():
            pages[f"/{endpoint}/{name}"] = _check_page(check)
    return pages


def _summary_page(endpoint: str, checks: Mapping[str, Check], results: HealthResults) -> Page:
    route = Route(component="", subresource=f"/{endpoint}")

    async def page(request: Request) -> Response:
        request.route = route
        query = request.query
        excluded = set(query.get("exclude", ()))
        lines, failed = [], False
        # They run together, so that one that waits does not delay the others.
        pending = {name: check() for name, check in checks.items() if name not in excluded}
        problems = dict(zip(pending, await asyncio.gather(*pending.values()), strict=True))
        for name in checks:
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok")
                continue
            problem = problems[name]
            results.add(name, endpoint, healthy=not problem)
            failed = failed or bool(problem)
            if problem:
                lines.append(f"[-]{name} failed: reason withheld")
            elif name not in _OWN_CHECKS:
                lines.append(f"[+]{name} ok")
        if unknown := sorted(excluded - set(checks)):
            names = ",".join(map(gotext.quote, unknown))
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
        if not failed and "verbose" not in query:
            return text_response("ok")
        lines.append(f"{endpoint} check {'failed' if failed else 'passed'}")
        return text_response("\n".join(lines) + "\n", 500 if failed else 200)

    return page


def _check_page(check: Check) -> Page:
    async def page(_request: Request) -> Response:
        problem = await check()
        if problem:
            return text_response(f"internal server error: {problem}\n", 500)
        return Response(200, [b"ok"], "text/plain; charset=utf-8")

    return page


def store_check(backend: Backend) -> Check:
    async def store() -> str:
        try:
            await backend.kv.status()
        except KVError as error:
            return error.reason
        return ""

    return store


def writable_store_check(backend: Backend) -> Check:
    """Return a check that the store responds and can be written: a server whose disk is full is not ready."""

    async def store() -> str:
        try:
            return (await backend.kv.status()).problem
        except KVError as error:
            return error.reason

    return store


def watch_cache_check(backend: Backend) -> Check:
    """Return a check that the watch cache is not more than `MAX_LAG_SECONDS` behind the store."""

    async def watch_cache() -> str:
        if not backend.watch_cache.revision:
            return "not synced"
        try:
            behind = await backend.watch_cache.lag.seconds_behind()
        except KVError as error:
            return error.reason
        return f"the watch cache is {behind:.0f} s behind the store" if behind > MAX_LAG_SECONDS else ""

    return watch_cache
