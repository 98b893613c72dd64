"""An HTTP server on a socket, without the rest of an API server."""

import asyncio
from contextlib import asynccontextmanager


@asynccontextmanager
async def served(server):
    """Return the port that a server listens on."""
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    try:
        yield listener.sockets[0].getsockname()[1]
    finally:
        listener.close()
        await server.shutdown(0.01)
        await listener.wait_closed()
