"""WebSockets to an API server, whose messages start with the number of a channel: for exec and port-forward."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

import aiohttp

from mockube.client.kubeconfig import Access
from mockube.client.tls import tls_context
from mockube.component_base.clock import RealClock
from mockube.failure import Failure

MAX_MESSAGE: Final = 16 << 20
CONNECT_SECONDS: Final = 10.0


class StreamFailed(Failure):
    """A stream to a container was refused, or ended with an error."""


@asynccontextmanager
async def open_websocket(
    access: Access, path: str, protocols: Sequence[str]
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """Yield a WebSocket with one of the protocols; raise StreamFailed if the server refuses it."""
    ssl_context = tls_context(access, RealClock()) if access.server.startswith("https") else True
    token = access.token_file.read_text().strip() if access.token_file else access.token
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        try:
            socket = await session.ws_connect(
                access.server + path,
                protocols=protocols,
                ssl=ssl_context,
                server_hostname=access.server_name or None,
                headers={"Authorization": f"Bearer {token}"} if token else None,
                max_msg_size=MAX_MESSAGE,
                autoping=True,
            )
        except aiohttp.WSServerHandshakeError as error:
            raise StreamFailed(f"the server refused the stream: {error.status} {error.message}") from error
        except (aiohttp.ClientError, OSError) as error:
            raise StreamFailed(f"the server does not respond: {error}") from error
        async with socket:
            yield socket


async def messages(socket: aiohttp.ClientWebSocketResponse) -> AsyncIterator[tuple[int, bytes]]:
    """Yield the channel and the content of each message, until the server closes the WebSocket."""
    async for message in socket:
        if message.type is aiohttp.WSMsgType.BINARY and message.data:
            yield message.data[0], message.data[1:]
