"""Asking another process how it is, over HTTP, as upstream's probes do and in their words."""

import os
from typing import Final

from aiohttp import ClientConnectorError, ClientError, ClientSession, ClientTimeout

from apiserver.rest.component_statuses import Health

SECONDS: Final = 20.0
SHOWN: Final = 10 * 1024
"""Bytes; what else is answered is not read."""
_FIRST_FAILURE: Final = 400


async def probe(url: str) -> Health:
    """Whose certificate it is does not matter: nothing is told, and only this machine is asked."""
    try:
        async with (
            ClientSession(timeout=ClientTimeout(total=SECONDS)) as session,
            session.get(url, ssl=False) as response,
        ):
            body = await response.content.read(SHOWN)
    except (ClientError, TimeoutError) as error:
        return Health(is_good=False, message=f'Get "{url}": {_reason(error)}')
    if response.status >= _FIRST_FAILURE:
        return Health(is_good=False, message=f"HTTP probe failed with statuscode: {response.status}")
    return Health(is_good=True, message=body.decode("utf-8", "replace"))


def _reason(error: ClientError | TimeoutError) -> str:
    if isinstance(error, ClientConnectorError):
        reason = os.strerror(error.os_error.errno or 0).lower()
        return f"dial tcp {error.host}:{error.port}: connect: {reason}"
    if isinstance(error, TimeoutError):
        return "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
    return str(error)
