"""The limits of what a server receives from the servers that it calls: webhooks, extension API servers, kubelets, token issuers.

The attack: whoever may register one of them, or runs a node, answers with as much as it likes, as slowly as it likes, or
makes the server open connections and parse certificates without end. Time is limited by each call's own timeout.
"""

from typing import Final

from aiohttp import ClientResponse

# --- Bytes of a response that is kept as a whole. What is only forwarded is streamed, and has no limit.

MAX_WEBHOOK_RESPONSE: Final = 16 * 1024 * 1024
"""A webhook's response. A patch can be larger than an object: it is base64, and may name every field."""
MAX_REVIEW_RESPONSE: Final = 4 * 1024 * 1024
"""The response of an authorizer, an authenticator or a token issuer."""
MAX_DOCUMENT: Final = 32 << 20
"""A document of an extension API server, for discovery and OpenAPI."""
MAX_KUBELET_ERROR: Final = 50_000
MAX_PROBE_RESPONSE: Final = 10 * 1024
"""The response of a component whose health is probed, as upstream (pkg/probe/http/http.go)."""
MAX_SHOWN: Final = 2048
"""Characters of a response that an error message includes."""

# --- Connections, and the contexts of TLS for them: each CA bundle has its own, which is kept for the next call.

MAX_DIALS: Final = 32
"""Connections to one address that are opened at the same time, so that they do not delay each other."""
MAX_BACKEND_CONTEXTS: Final = 50
MAX_WEBHOOK_CONTEXTS: Final = 200
MAX_REVIEW_CONTEXTS: Final = 200


async def read_whole(response: ClientResponse, max_bytes: int) -> bytes:
    """Return the body of a response; raise ValueError if it is longer."""
    parts, size = list[bytes](), 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > max_bytes:
            response.close()
            raise ValueError(f"the response is longer than {max_bytes} bytes")
    return b"".join(parts)
