"""Is the server alive, and is it ready: /healthz, /livez and /readyz, each check by name."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from mockube.apiserver.registry.backend import Backend
from mockube.apiserver.request.request import Request
from mockube.apiserver.request.response import Response, text_response
from mockube.apiserver.supervision import TASKS, check_name, is_restarted
from mockube.etcd.errors import KVError

Check: TypeAlias = Callable[[], Awaitable[str]]
"""Answers what is wrong, or "" if all is well."""
Page: TypeAlias = Callable[[Request], Awaitable[Response]]
Pages: TypeAlias = Mapping[str, Page]
"""By exact path, without a slash at its end."""

MAX_LAG_SECONDS: Final = 10.0
"""How far the watch cache may be behind the store before the server is not ready."""
ENDPOINTS = ("healthz", "livez", "readyz")
ONLY_FOR_READINESS = frozenset(
    {
        "shutdown",
        "informer-sync",
        "etcd-readiness",
        *(check_name(name) for name in TASKS if is_restarted(name)),
    }
)
"""A server of which one of these fails may mend itself: nobody should kill it for that."""
NOT_FOR_READINESS = frozenset({"loopback-serving-certificate"})
ROLES_HOOK: Final = "rbac/bootstrap-roles"
HOOKS: Final = (
    "start-apiserver-admission-initializer",
    "generic-apiserver-start-informers",
    "priority-and-fairness-config-consumer",
    "priority-and-fairness-filter",
    "storage-object-count-tracker-hook",
    "start-apiextensions-informers",
    "start-apiextensions-controllers",
    "crd-informer-synced",
    "start-system-namespaces-controller",
    "peer-endpoint-reconciler-controller",
    "start-cluster-authentication-info-controller",
    "start-kube-apiserver-identity-lease-controller",
    "start-kube-apiserver-identity-lease-garbage-collector",
    "storage-readiness",
    "start-legacy-token-tracking-controller",
    "start-service-ip-repair-controllers",
    ROLES_HOOK,
    "scheduling/bootstrap-system-priority-classes",
    "priority-and-fairness-config-producer",
    "bootstrap-controller",
    "start-kubernetes-service-cidr-controller",
    "start-kube-aggregator-informers",
    "apiservice-status-local-available-controller",
    "apiservice-status-remote-available-controller",
    "apiservice-registration-controller",
    "apiservice-discovery-controller",
    "kube-apiserver-autoregistration",
    "apiservice-openapi-controller",
    "apiservice-openapiv3-controller",
)
"""What kube-apiserver does after its start, by the names under which its pages tell that it is done."""


async def ping() -> str:
    """The server answers, for it is answering."""
    return ""


def health_pages(checks: Mapping[str, Check]) -> Pages:
    pages: dict[str, Page] = {}
    for endpoint in ENDPOINTS:
        chosen = {
            name: check
            for name, check in checks.items()
            if name not in (NOT_FOR_READINESS if endpoint == "readyz" else ONLY_FOR_READINESS)
        }
        pages[f"/{endpoint}"] = _all_of(endpoint, chosen)
        for name, check in chosen.items():
            pages[f"/{endpoint}/{name}"] = _one(name, check)
    return pages


def _all_of(endpoint: str, checks: Mapping[str, Check]) -> Page:
    async def page(request: Request) -> Response:
        query = request.query
        excluded = set(query.get("exclude", ()))
        lines, failed = [], False
        for name, check in checks.items():
            if name in excluded:
                lines.append(f"[+]{name} excluded: ok")
                continue
            problem = await check()
            failed = failed or bool(problem)
            lines.append(f"[-]{name} failed: reason withheld" if problem else f"[+]{name} ok")
        lines += [
            f'warn: some health checks cannot be excluded: no matches for "{name}"'
            for name in sorted(excluded - set(checks))
        ]
        if not failed and "verbose" not in query:
            return text_response("ok")
        lines.append(f"{endpoint} check {'failed' if failed else 'passed'}")
        return text_response("\n".join(lines) + "\n", 500 if failed else 200)

    return page


def _one(name: str, check: Check) -> Page:
    async def page(_request: Request) -> Response:
        problem = await check()
        return (
            text_response(f"internal server error: {name}: {problem}\n", 500)
            if problem
            else text_response("ok")
        )

    return page


def store_check(backend: Backend) -> Check:
    async def store() -> str:
        try:
            await backend.kv.status()
        except KVError as error:
            return str(error)
        return ""

    return store


def watch_cache_check(backend: Backend) -> Check:
    """Whether the watch cache shows what is stored, or did so a little while ago."""

    async def watch_cache() -> str:
        if not backend.watch_cache.revision:
            return "not synced"
        try:
            behind = await backend.watch_cache.behind()
        except KVError as error:
            return str(error)
        return f"the watch cache is {behind:.0f} s behind the store" if behind > MAX_LAG_SECONDS else ""

    return watch_cache
