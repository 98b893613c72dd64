"""The limits of published ports.

The attack: whoever may create Services opens ports, and whoever reaches a port of this machine opens connections and sends bytes to
the process that runs all nodes and all controllers, and need not read what is sent back. The limits are those of the API server where
it has one. Beyond that of connections of all kinds, the one is reset that is idle for the longest time, of the address that has most of
them; one with a request in progress is not idle.
"""

from typing import Final

MAX_LISTENERS: Final = 10_000
"""Ports on which this machine listens; the Services beyond them are not published, and an Event says so."""
MAX_CONNECTIONS: Final = 4_096
"""Connections of all clients."""
SMALL_HEAD: Final = 16 << 10
"""Bytes of the head of a request that do not count against `ALL_HEADS`."""
ALL_HEADS: Final = 64 << 20
"""Bytes of all heads together that are not complete; a head for which there is no room gets 431."""
HEAD_SECONDS: Final = 32.0
"""How long a client may take to send a head, for the first one from the connection on."""
KEEP_ALIVE_SECONDS: Final = 75.0
"""How long a connection may wait for its next request, as with ingress-nginx."""
BODY_SECONDS: Final = 60.0
"""The time without a byte of a body after which its request gets 408, as with ingress-nginx. Bytes that follow slowly use it up, too."""
MIN_BODY_RATE: Final = 500
"""The bytes of a body that give back one of these seconds, as in Apache's RequestReadTimeout."""
LINGER_SECONDS: Final = 30.0
"""How long a body is read that nobody needs, so that its client can read the response, as with nginx."""
RESPONSE_SECONDS: Final = 60.0
"""How long a client may take to read a part of a response, as with ingress-nginx, and the rest once a connection is closed."""
IDLE_SECONDS: Final = 3600.0
"""The time without a byte after which a connection ends."""
SWEEP_SECONDS: Final = 30.0
"""The interval of the search for idle connections."""
DROP_SECONDS: Final = 30.0
"""How long a connection stays open whose packets a real cluster drops, so that its client runs into its own timeout."""
MAX_RECORDS: Final = 5_000
"""Replaced ports that the ConfigMap lists: it holds a mebibyte."""
