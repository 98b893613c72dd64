"""Serve the manager's health, metrics and configuration over HTTP or HTTPS, with a given or a self-signed certificate."""

import asyncio
import logging
import ssl
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import orjson
from aiohttp import hdrs, web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec import Struct

from mockube.apimachinery.hosts import is_local_or_address, is_loopback, join_host_port
from mockube.apimachinery.randomness import Random
from mockube.component_base.exposition import CONTENT_TYPE, metrics_text
from mockube.component_base.metrics import Registry

LOG: Final = logging.getLogger(__name__)

CERTIFICATE_LIFETIME: Final = timedelta(days=365)
BACKDATE: Final = timedelta(minutes=5)
"""How far `notBefore` lies in the past, so that a client whose clock is slow accepts the certificate."""


def tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    ssl_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ssl_context.minimum_version = ssl.TLSVersion.TLSv1_2
    ssl_context.load_cert_chain(certificate, key)
    return ssl_context


def request_client_certificates(tls: ssl.SSLContext, authority: Path) -> None:
    """Request client certificates; the handshake fails for one that the CA has not signed."""
    tls.load_verify_locations(cadata=authority.read_text())
    tls.verify_mode = ssl.CERT_OPTIONAL


def self_signed_tls_context(address: str, *, now: datetime, random: Random) -> ssl.SSLContext:
    """Return a TLS context with a new self-signed certificate for an address."""
    return tls_context_of_pair(*self_signed_certificate(address, now=now, random=random))


def self_signed_certificate(address: str, *, now: datetime, random: Random) -> tuple[bytes, bytes]:
    """Return a self-signed certificate and its key, as PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    hosts = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address(address))])
    builder = x509.CertificateBuilder(name, name, key.public_key(), int.from_bytes(random.bytes(16)) | 1)
    builder = builder.not_valid_before(now - BACKDATE).not_valid_after(now + CERTIFICATE_LIFETIME)
    certificate = builder.add_extension(hosts, critical=False).sign(key, hashes.SHA256())
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), private


def tls_context_of_pair(certificate: bytes, key: bytes) -> ssl.SSLContext:
    """Return the TLS context of a certificate and its key.

    OpenSSL reads certificates from files only, so both are written to a private folder and deleted at once.
    """
    with tempfile.TemporaryDirectory() as folder:
        public, private = Path(folder, "certificate.pem"), Path(folder, "key.pem")
        public.write_bytes(certificate)
        private.write_bytes(key)
        return tls_context(public, private)


Check = Callable[[], str]
"""A health check: returns the problem, or "" if there is none."""

ENDPOINTS: Final = ("healthz", "livez", "readyz")


class StatusSources(Struct, frozen=True, kw_only=True):
    checks: Mapping[str, Check]
    """The health checks by name; checks may be added and removed at any time."""
    registry: Registry
    settings: Any
    """The JSON value of `/configz`."""


class ListenAddress(Struct, frozen=True, kw_only=True):
    """An address and a port to listen on; port 0 chooses a free one."""

    address: str
    number: int
    tls: ssl.SSLContext | None = None


@asynccontextmanager
async def serving(sources: StatusSources, ports: Sequence[ListenAddress]) -> AsyncIterator[Sequence[str]]:
    """Serve on all ports; yields the URLs."""
    runner = web.ServerRunner(web.Server(_Endpoints(sources).handle, access_log=None))
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
    def __init__(self, sources: StatusSources) -> None:
        self._sources = sources
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
        if _lacks_client_certificate(request):
            return _text("Unauthorized\n", 401)
        if request.path == "/metrics":
            return web.Response(
                body=await asyncio.to_thread(metrics_text, self._sources.registry.collect()),
                headers={"Content-Type": CONTENT_TYPE},
            )
        if request.path == "/configz":
            return web.Response(body=orjson.dumps(self._sources.settings), content_type="application/json")
        return _text("404 page not found\n", 404)

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


def _lacks_client_certificate(request: web.BaseRequest) -> bool:
    """Return whether client certificates are required and the client has not sent one."""
    tls = request.get_extra_info("ssl_object")
    return tls is not None and tls.context.verify_mode != ssl.CERT_NONE and not tls.getpeercert()


def _text(text: str, code: int = 200) -> web.Response:
    headers = {"Cache-Control": "no-cache, private", "X-Content-Type-Options": "nosniff"}
    return web.Response(text=text, status=code, content_type="text/plain", headers=headers)
