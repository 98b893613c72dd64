"""Serve the manager's health, metrics, queues and configuration over HTTP or HTTPS, with a given or a self-signed certificate."""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from hmac import compare_digest
from typing import Any, Final

import orjson
from aiohttp import hdrs, web
from msgspec import Struct

from mockube.apimachinery.hosts import is_local_or_address, is_loopback, join_host_port
from mockube.component_base.exposition import CONTENT_TYPE, metrics_text
from mockube.component_base.metrics import MetricsRegistry

from . import controllers_page

LOG: Final = logging.getLogger(__name__)

Check = Callable[[], str]
"""A health check: returns the problem, or "" if there is none."""

ENDPOINTS: Final = ("healthz", "livez", "readyz")


class StatusSources(Struct, frozen=True, kw_only=True):
    checks: Mapping[str, Check]
    """The health checks by name; checks may be added and removed at any time."""
    registry: MetricsRegistry
    settings: Any
    """The JSON value of `/configz`."""
    controllers: Callable[[], bytes]
    """Returns the queues of the controllers as JSON."""


class ListenAddress(Struct, frozen=True, kw_only=True):
    """An address and a port to listen on; port 0 chooses a free one."""

    address: str
    number: int
    tls: ssl.SSLContext | None = None


@asynccontextmanager
async def serving(
    sources: StatusSources, ports: Sequence[ListenAddress], controllers_token: str
) -> AsyncIterator[Sequence[str]]:
    """Serve on all ports; yields the URLs. The queues are for whoever has the token, or a certificate where one is required."""
    runner = web.ServerRunner(web.Server(_Endpoints(sources, controllers_token).handle, access_log=None))
    await runner.setup()
    try:
        for port in ports:
            await web.TCPSite(runner, port.address, port.number, ssl_context=port.tls).start()
        yield [
            f"{'https' if port.tls else 'http'}://{join_host_port(address[0], address[1])}"
            for port, address in zip(ports, runner.addresses, strict=True)
        ]
    finally:
        await runner.cleanup()


class _Endpoints:
    def __init__(self, sources: StatusSources, controllers_token: str) -> None:
        self._sources = sources
        self._credentials = f"Bearer {controllers_token}".encode()
        self._broken_checks: set[str] = set()
        """The names of checks that raised an error when they were last called."""

    async def handle(self, request: web.BaseRequest) -> web.Response:
        first, _, name = request.path.strip("/").partition("/")
        if _is_dns_rebinding(request):
            return _text("421 Misdirected Request: unknown host name\n", 421)
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405)
        if first in ENDPOINTS:
            return (
                self._single_check(name)
                if name
                else self._all_checks(first, verbose="verbose" in request.query)
            )
        if not self._is_authenticated(request):
            return _text("Unauthorized\n", 401)
        if request.path == "/metrics":
            return web.Response(
                body=await asyncio.to_thread(metrics_text, self._sources.registry.collect()),
                headers={"Content-Type": CONTENT_TYPE},
            )
        if request.path == controllers_page.PATH:
            return web.Response(body=self._sources.controllers(), content_type="application/json")
        if request.path == "/configz":
            return web.Response(body=orjson.dumps(self._sources.settings), content_type="application/json")
        return _text("404 page not found\n", 404)

    def _is_authenticated(self, request: web.BaseRequest) -> bool:
        if request.path != controllers_page.PATH:
            return not _is_certificate_required(request) or _has_certificate(request)
        authorization = request.headers.get(hdrs.AUTHORIZATION, "").encode(errors="surrogateescape")
        return compare_digest(authorization, self._credentials) or _has_certificate(request)

    def _all_checks(self, endpoint: str, *, verbose: bool) -> web.Response:
        problems = {name: self._problem(name, check) for name, check in [*self._sources.checks.items()]}
        failed = any(problems.values())
        if not (failed or verbose):
            return _text("ok")
        lines = [
            f"[-]{name} failed: {problem}" if problem else f"[+]{name} ok"
            for name, problem in problems.items()
        ]
        lines.append(f"{endpoint} check {'failed' if failed else 'passed'}")
        return _text("\n".join(lines) + "\n", 500 if failed else 200)

    def _single_check(self, name: str) -> web.Response:
        check = self._sources.checks.get(name)
        if check is None:
            return _text("404 page not found\n", 404)
        problem = self._problem(name, check)
        return _text(f"internal server error: {problem}\n", 500) if problem else _text("ok")

    def _problem(self, name: str, check: Check) -> str:
        """Return the result of a check. One that raises an error fails by its name, and the others are not affected."""
        try:
            problem = check()
        except Exception as error:
            if name not in self._broken_checks:
                LOG.exception("The health check %r raised an error", name)
            self._broken_checks.add(name)
            return f"{type(error).__name__}: {error}"
        self._broken_checks.discard(name)
        return problem


def _is_dns_rebinding(request: web.BaseRequest) -> bool:
    """Return whether a request to a loopback address names another host, as after a DNS rebinding attack."""
    host, local_address = request.headers.get(hdrs.HOST, ""), request.get_extra_info("sockname")
    return local_address is not None and is_loopback(local_address[0]) and not is_local_or_address(host)


def _is_certificate_required(request: web.BaseRequest) -> bool:
    tls = request.get_extra_info("ssl_object")
    return tls is not None and tls.context.verify_mode != ssl.CERT_NONE


def _has_certificate(request: web.BaseRequest) -> bool:
    """Return whether the client has sent a certificate, which was verified."""
    tls = request.get_extra_info("ssl_object")
    return tls is not None and bool(tls.getpeercert())


def _text(text: str, code: int = 200) -> web.Response:
    headers = {"Cache-Control": "no-cache, private", "X-Content-Type-Options": "nosniff"}
    return web.Response(text=text, status=code, content_type="text/plain", headers=headers)
