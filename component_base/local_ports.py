"""The listeners of a process whose ports objects must not contain, because a free port differs at each start."""

from collections.abc import MutableMapping
from typing import Final

KUBELETS: Final = "127.0.0.1:10250"
"""The address of the simulated kubelets in objects."""
LocalPorts = MutableMapping[str, str]
"""The address of each listener, by the address that objects contain in its place."""
