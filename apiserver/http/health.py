"""Is the server alive, and is it ready: /healthz, /livez and /readyz, each check by name."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from aiohttp import web

from mockube.apiserver.supervision import TASKS, check_name, is_restarted

Check: TypeAlias = Callable[[], Awaitable[str]]
"""Answers what is wrong, or "" if all is well."""
Page: TypeAlias = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

ENDPOINTS = ("healthz", "livez", "readyz")
ONLY_FOR_READINESS = frozenset(
    {"shutdown", "informer-sync", *(check_name(name) for name in TASKS if is_restarted(name))}
)
"""A server of which one of these fails may mend itself: nobody should kill it for that."""


async def ping() -> str:
    """The server answers, for it is answering."""
    return ""


def health_pages(checks: Mapping[str, Check]) -> Mapping[str, Page]:
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
    async def page(request: web.BaseRequest) -> web.Response:
        query = request.query
        excluded = set(query.getall("exclude", []))
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
            return _text("ok")
        lines.append(f"{endpoint} check {'failed' if failed else 'passed'}")
        return _text("\n".join(lines) + "\n", 500 if failed else 200)

    return page


def _one(name: str, check: Check) -> Page:
    async def page(_request: web.BaseRequest) -> web.Response:
        problem = await check()
        return _text(f"internal server error: {name}: {problem}\n", 500) if problem else _text("ok")

    return page


def _text(text: str, code: int = 200) -> web.Response:
    headers = {"Cache-Control": "no-cache, private", "X-Content-Type-Options": "nosniff"}
    return web.Response(text=text, status=code, content_type="text/plain", headers=headers)
