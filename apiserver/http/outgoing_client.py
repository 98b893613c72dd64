"""The client for requests that the server sends for itself: bounded in time, in size and in connections."""

import ssl
import tempfile
from collections import OrderedDict
from pathlib import Path
from typing import Final

from aiohttp import ClientError, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, ThreadedResolver
from yarl import URL

from mockube.apiserver.http.webhook_client import failure_reason
from mockube.apiserver.outgoing import Answer, CallFailed, Outgoing, Tls

MAX_ANSWER: Final = 4 * 1024 * 1024
MAX_CONTEXTS: Final = 200
_CONNECTIONS: Final = 100


class OutgoingClient:
    """Belongs to the event loop in which it is first used."""

    def __init__(self) -> None:
        self._session: ClientSession | None = None
        self._contexts: OrderedDict[Tls, ssl.SSLContext] = OrderedDict()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def send(self, request: Outgoing) -> Answer:
        operation = f'{request.method.capitalize()} "{request.url}"'
        try:
            return await self._send(request)
        except TimeoutError as error:
            raise CallFailed(f"{operation}: context deadline exceeded") from error
        except (ClientError, OSError, ValueError) as error:
            raise CallFailed(f"{operation}: {failure_reason(error, request.url)}") from error

    async def _send(self, request: Outgoing) -> Answer:
        url = URL(request.url)
        async with self._open_session().request(
            request.method,
            url,
            data=request.body or None,
            headers=request.headers,
            ssl=self._context(request.tls) if url.scheme == "https" else True,
            server_hostname=request.tls.server_name or None,
            proxy=request.proxy or None,
            allow_redirects=request.follows_redirects,
            timeout=ClientTimeout(total=request.seconds),
        ) as response:
            parts, size = list[bytes](), 0
            async for part in response.content.iter_any():
                parts.append(part)
                size += len(part)
                if size > MAX_ANSWER:
                    response.close()
                    raise ValueError(f"the response is longer than {MAX_ANSWER} bytes")
            headers = {name.lower(): value for name, value in response.headers.items()}
            return Answer(
                code=response.status, reason=response.reason or "", headers=headers, body=b"".join(parts)
            )

    def _open_session(self) -> ClientSession:
        if self._session is None:
            connector = TCPConnector(resolver=ThreadedResolver(), limit=_CONNECTIONS)
            self._session = ClientSession(
                connector=connector, cookie_jar=DummyCookieJar(), timeout=ClientTimeout(total=None)
            )
        return self._session

    def _context(self, tls: Tls) -> ssl.SSLContext:
        if tls in self._contexts:
            self._contexts.move_to_end(tls)
            return self._contexts[tls]
        context = self._contexts[tls] = tls_context(tls)
        if len(self._contexts) > MAX_CONTEXTS:
            self._contexts.popitem(last=False)
        return context


def tls_context(tls: Tls) -> ssl.SSLContext:
    """Return a context, or raise CallFailed for what is no PEM."""
    try:
        context = ssl.create_default_context(cadata=tls.authority.decode() or None)
        if tls.certificate:
            with tempfile.NamedTemporaryFile(prefix="mockube-") as file:  # ssl reads keys from files alone
                Path(file.name).write_bytes(tls.certificate + b"\n" + tls.key)
                context.load_cert_chain(file.name)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise CallFailed(f"tls: failed to parse certificates: {error}") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # As Go: a certificate that is trusted by itself needs no issuer, and need not be an authority's.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
