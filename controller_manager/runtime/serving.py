"""What the manager tells of itself over HTTP: its health, its metrics, and how it was set."""

import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import orjson
from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

Check = Callable[[], str]
"""Answers what is wrong, or "" if all is well."""

ENDPOINTS: Final = ("healthz", "livez", "readyz")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    checks: Mapping[str, Check]
    """By name; it may grow while it is served."""
    registry: CollectorRegistry
    settings: Any
    """As JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """0 is any that is free."""

    address: str
    number: int
    tls: ssl.SSLContext | None = None


@asynccontextmanager
async def serving(told: Told, ports: Sequence[Port]) -> AsyncIterator[Sequence[str]]:
    """Serve on all ports; answers with the URLs."""
    runner = web.ServerRunner(web.Server(_Pages(told).answer, access_log=None))
    await runner.setup()
    try:
        for port in ports:
            await web.TCPSite(runner, port.address, port.number, ssl_context=port.tls).start()
        yield [
            f"{'https' if port.tls else 'http'}://{_host(address[0])}:{address[1]}"
            for port, address in zip(ports, runner.addresses, strict=True)
        ]
    finally:
        await runner.cleanup()


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


class _Pages:
    def __init__(self, told: Told) -> None:
        self._told = told

    async def answer(self, request: web.BaseRequest) -> web.Response:
        first, _, name = request.path.strip("/").partition("/")
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405)
        if first in ENDPOINTS:
            return self._one(name) if name else self._all(first, verbose="verbose" in request.query)
        if _is_stranger(request):
            return _text("Unauthorized\n", 401)
        if request.path == "/metrics":
            return web.Response(
                body=generate_latest(self._told.registry), headers={"Content-Type": CONTENT_TYPE_LATEST}
            )
        if request.path == "/configz":
            return web.Response(body=orjson.dumps(self._told.settings), content_type="application/json")
        return _text("404 page not found\n", 404)

    def _all(self, endpoint: str, *, verbose: bool) -> web.Response:
        problems = {name: check() for name, check in self._told.checks.items()}
        failed = any(problems.values())
        if not (failed or verbose):
            return _text("ok")
        lines = [
            f"[-]{name} failed: {problem}" if problem else f"[+]{name} ok"
            for name, problem in problems.items()
        ]
        lines.append(f"{endpoint} check {'failed' if failed else 'passed'}")
        return _text("\n".join(lines) + "\n", 500 if failed else 200)

    def _one(self, name: str) -> web.Response:
        check = self._told.checks.get(name)
        if check is None:
            return _text("404 page not found\n", 404)
        problem = check()
        return _text(f"internal server error: {problem}\n", 500) if problem else _text("ok")


def _is_stranger(request: web.BaseRequest) -> bool:
    """Where clients are known by their certificates, whoever shows none."""
    tls = request.get_extra_info("ssl_object")
    return tls is not None and tls.context.verify_mode != ssl.CERT_NONE and not tls.getpeercert()


def _text(text: str, code: int = 200) -> web.Response:
    headers = {"Cache-Control": "no-cache, private", "X-Content-Type-Options": "nosniff"}
    return web.Response(text=text, status=code, content_type="text/plain", headers=headers)
