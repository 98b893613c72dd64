"""HTTP health probes of another process, with the messages of upstream's probes."""

import os
from http import HTTPStatus
from typing import Final

from aiohttp import ClientConnectorError, ClientError, ClientSession, ClientTimeout, hdrs
from yarl import URL

from mockube.apimachinery import gotext
from mockube.apiserver.registry.component_statuses import ComponentHealth

from . import outgoing_limits

SECONDS: Final = 20.0
_MAX_REDIRECTS: Final = 10


async def probe(url: str) -> ComponentHealth:
    """Return the health of the component at a URL. Its certificate does not matter, since nothing is sent to it.

    As upstream, a redirect is followed only where it leads to the same host: other hosts are not contacted.
    """
    try:
        async with ClientSession(timeout=ClientTimeout(total=SECONDS)) as session:
            return await _get(session, URL(url), _MAX_REDIRECTS)
    except (ClientError, ValueError, TimeoutError) as error:
        return ComponentHealth(is_good=False, message=f'Get "{url}": {_reason(error)}')


async def _get(session: ClientSession, url: URL, redirects: int) -> ComponentHealth:
    async with session.get(url, ssl=False, allow_redirects=False) as response:
        code, location = response.status, response.headers.get(hdrs.LOCATION, "")
        target = url.join(URL(location)) if _is_redirect(code) and location else None
        if target is None or target.host != url.host or not redirects:
            return _health(code, await response.content.read(outgoing_limits.MAX_PROBE_RESPONSE))
    return await _get(session, target, redirects - 1)


def _is_redirect(code: int) -> bool:
    return HTTPStatus.MULTIPLE_CHOICES <= code < HTTPStatus.BAD_REQUEST


def _health(code: int, body: bytes) -> ComponentHealth:
    if code >= HTTPStatus.BAD_REQUEST:
        return ComponentHealth(is_good=False, message=f"HTTP probe failed with statuscode: {code}")
    return ComponentHealth(is_good=True, message=gotext.decode_utf8(body))


def _reason(error: ClientError | ValueError | TimeoutError) -> str:
    if isinstance(error, ClientConnectorError):
        reason = os.strerror(error.os_error.errno or 0).lower()
        return f"dial tcp {error.host}:{error.port}: connect: {reason}"
    if isinstance(error, TimeoutError):
        return "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    return str(error)
