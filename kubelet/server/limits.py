"""The limits of a kubelet's server.

The attack: whoever may exec into a pod, attach to it, forward its ports or read its logs sends streams, frames and
messages to the process that runs all nodes and all controllers, and need not read what is sent back. Each limit bounds what
one such client makes the process keep; a client beyond it waits, or its connection ends.
"""

from typing import Final

# --- Bytes that are kept until the other side reads them.


# --- Bytes of what is received as a whole.

MAX_MESSAGE: Final = 4 << 20
"""A message of a WebSocket."""
MAX_FRAME: Final = 1 << 20
"""A frame of SPDY."""
MAX_FRAME_HEADERS: Final = 64 * 1024
"""A decompressed block of headers of SPDY, which a few bytes may become."""

# --- Numbers of what is kept for clients.

MAX_STREAMS: Final = 1_000
"""Open streams of a session of SPDY."""
MAX_FORWARDED_PORTS: Final = 64
"""Ports of a session over a WebSocket."""
MAX_FORWARDED_PAIRS: Final = 500
"""Forwarded connections that have one of their two streams only."""
MAX_LEFT_COMMANDS: Final = 200
"""Commands that continue when their client has left; beyond it the oldest ends."""
MAX_DECISIONS: Final = 10_000
"""Cached decisions about the rights of clients, and users of tokens."""
