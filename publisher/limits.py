"""The limits of published ports.

The attack: whoever may create Services opens ports, and whoever reaches a port of this machine opens connections and sends bytes to
the process that runs all nodes and all controllers, and need not read what is sent back. A connection beyond a limit is reset.
"""

from typing import Final

MAX_LISTENERS: Final = 10_000
"""Ports on which this machine listens; the Services beyond them are not published, and an Event says so."""
MAX_CONNECTIONS: Final = 4_096
"""Connections of all clients."""
IDLE_SECONDS: Final = 3600.0
"""The time without a byte after which a connection ends."""
SWEEP_SECONDS: Final = 30.0
"""The interval of the search for idle connections."""
DROP_SECONDS: Final = 30.0
"""How long a connection stays open whose packets a real cluster drops, so that its client runs into its own timeout."""
MAX_RECORDS: Final = 5_000
"""Replaced ports that the ConfigMap lists: it holds a mebibyte."""
