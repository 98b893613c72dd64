"""What a server with a configuration is written with; an entry point of the group `mockube.servers` adds its `ServerKind`.

Its programs are those of `mockube.programs`. One that serves reads the files of its container, and lets `server_of(process)` accept a
`ServedConfiguration`: from then on, its ports are open, and `answer` answers their requests. `answer` returns the response, or is a
generator that yields a `ProxyCall` for each request to another server of the cluster, and returns the response at its end.
"""

from mockube.container_runtime.simulated.server_contract import (
    Answering,
    FileReader,
    ProxyCall,
    ProxyReply,
    Request,
    Response,
    RunningServer,
    ServedConfiguration,
)
from mockube.container_runtime.simulated.shell.programs.installed_servers import ServerKind, server_of
from mockube.container_runtime.simulated.shell.signals import SIGNALS

__all__ = [
    "SIGNALS",
    "Answering",
    "FileReader",
    "ProxyCall",
    "ProxyReply",
    "Request",
    "Response",
    "RunningServer",
    "ServedConfiguration",
    "ServerKind",
    "server_of",
]
