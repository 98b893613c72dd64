"""The errors of a connection, and what they mean for its request."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import aiohttp

from mockube.etcd.errors import Interrupted, Unavailable
from mockube.etcd.remote.errors import NotTrusted

_NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
"""The connection was not established, so the request was not sent. After any other failure it may have arrived."""


@contextmanager
def connection_to(endpoint: str) -> Iterator[None]:
    """Translate the errors of aiohttp and of the system into the store's."""
    try:
        yield
    except aiohttp.ClientSSLError as error:
        cut_short = isinstance(error.__cause__, ssl.SSLEOFError)
        raise (Unavailable if cut_short else NotTrusted)(f"{endpoint}: {error}") from error
    except _NEVER_SENT as error:
        raise Unavailable(f"{endpoint}: {error}") from error
    except (aiohttp.ClientError, OSError) as error:
        raise Interrupted(f"{endpoint}: {str(error) or type(error).__name__}") from error
