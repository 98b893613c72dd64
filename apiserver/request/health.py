"""Is the server alive, and is it ready: /healthz, /livez and /readyz, each check by name."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from mockube.apiserver.request.request import Request
from mockube.apiserver.request.response import Response, text_response
from mockube.apiserver.supervision import TASKS, check_name, is_restarted

Check: TypeAlias = Callable[[], Awaitable[str]]
"""Answers what is wrong, or "" if all is well."""
Page: TypeAlias = Callable[[Request], Awaitable[Response]]
Pages: TypeAlias = Mapping[str, Page]
"""By exact path, without a slash at its end."""

ENDPOINTS = ("healthz", "livez", "readyz")
ONLY_FOR_READINESS = frozenset(
    {"shutdown", "informer-sync", *(check_name(name) for name in TASKS if is_restarted(name))}
)
"""A server of which one of these fails may mend itself: nobody should kill it for that."""


async def ping() -> str:
    """The server answers, for it is answering."""
    return ""


def health_pages(checks: Mapping[str, Check]) -> Pages:
    pages: dict[str, Page] = {}
    for endpoint in ENDPOINTS:
        chosen = {
            name: check
            for name, check in checks.items()
            if endpoint == "readyz" or name not in ONLY_FOR_READINESS
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
