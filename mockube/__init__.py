"""The user interface of mockube: the command line, `mockube.Cluster` and the pytest plugin.

A module belongs here if users run or import it, or if it implements that. It may import every other package; none may import it.
"""

from mockube.exports import __getattr__

__all__ = [
    "AlreadyExists",
    "ApiError",
    "AsyncCluster",
    "AsyncConnection",
    "AsyncForkedCluster",
    "Cluster",
    "Conflict",
    "Connection",
    "ExecResult",
    "Forbidden",
    "ForkedCluster",
    "Invalid",
    "KindNotServed",
    "NotFound",
    "NotStarted",
    "WaitFailed",
    "__getattr__",
    "connect",
    "explore",
    "replay_finding",
]
