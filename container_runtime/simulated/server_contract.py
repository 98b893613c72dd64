"""What servers with a configuration share: requests and responses, what they need to answer, and the server that runs. Pure."""

from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from msgspec import Struct, field


class Request(Struct, frozen=True, kw_only=True):
    method: str
    target: str
    """The path with the query."""
    headers: Mapping[str, str] = {}
    """The headers by their names in lower case."""
    client: str = "127.0.0.1"
    port: int = 80
    tls: bool = False
    body: bytes = b""
    address: str = "127.0.0.1"
    """The address of the server."""
    hostname: str = "localhost"
    now: datetime = datetime.fromtimestamp(0, UTC)
    number: int = 1
    """How many requests the server has got."""

    @property
    def host(self) -> str:
        """The host that the client names, without the port."""
        host = self.headers.get("host", "")
        return host.partition("]")[0] + "]" if host.startswith("[") else host.partition(":")[0]

    @property
    def time_local(self) -> str:
        return f"{self.now:%d/%b/%Y:%H:%M:%S} +0000"

    @property
    def time_iso8601(self) -> str:
        return f"{self.now:%Y-%m-%dT%H:%M:%S}+00:00"


class FileReader(Protocol):
    """The files of the server's container."""

    def kind(self, path: str) -> str:
        """Return what a path is: file, folder, or "" if it does not exist."""

    def read(self, path: str) -> bytes:
        """Return the data of a file; raise `OSError` if the server may not read it."""

    def names(self, path: str) -> Sequence[str]:
        """Return the names in a folder, those of folders with a slash."""


class ProxyCall(Struct, frozen=True, kw_only=True):
    """A request that a server sends to another one."""

    host: str
    """An address, or a name that was looked up at the start, or that a resolver knows."""
    port: int
    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    tls: bool = False
    body: bytes = b""
    needs_resolver: bool = False
    """Whether the name is looked up now, and not at the start."""
    uses_search: bool = False
    """Whether it is looked up in the domains of resolv.conf, too."""


class ProxyReply(Struct, frozen=True, kw_only=True):
    status: int = 0
    """The status; 0 without a response."""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    problem: str = ""
    """Why there is no response, in the words of the error log."""
    has_timed_out: bool = False


class Response(Struct, kw_only=True):
    status: int
    """The status; 0 if the server closes the connection without a response."""
    content_type: str = "text/html"
    headers: list[tuple[str, str]] = field(default_factory=list)
    body: bytes = b""
    location: str = ""
    server: str = ""
    """The header Server."""
    errors: list[str] = field(default_factory=list)
    """The lines for the error log."""
    logs: list[tuple[str, str]] = field(default_factory=list)
    """The lines for the logs of requests, each with its path."""
    error_log: str = ""


Answering = Generator[ProxyCall, ProxyReply, Response]
"""Answers a request: it yields what it sends to other servers, and receives their replies."""


class ServedConfiguration(Struct, frozen=True, kw_only=True):
    """A configuration that a server has read."""

    answer: Callable[[Request, FileReader], Answering | Response]
    """Returns the response to a request, or what sends requests to other servers first."""
    ports: Mapping[int, bool]
    """The ports of HTTP, each with whether it needs TLS."""
    unknown_ports: Mapping[int, str] = field(default_factory=dict)
    """The ports whose answers nobody knows, each with what is not simulated."""
    addresses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The addresses of the names that were looked up at the start; none for one outside of the cluster."""
    not_simulated: tuple[str, ...] = ()
    """What changes answers and is left out."""
    certificate: tuple[str, str] | None = None
    """The files of the first certificate and of its key."""
    worker: int | None = None
    """The user as which processes read files; None if it is that of the container."""


class RunningServer(Struct):
    """The server of one run of a container, which its programs start and reload."""

    runs: bool = False
    """Whether the first process of the container is the server of its image, with the configuration of the image."""
    runs_entrypoint: bool = False
    """Whether the entrypoint of the image runs before the server."""
    is_starting: bool = False
    """Whether a program reads a configuration, for which it may look up names."""
    configuration: ServedConfiguration | None = None
    """What a program has read; None for the configuration of the image."""
    requests: int = 0
    write_log: Callable[[int, str], None] = lambda *_: None
    """Writes a line to a descriptor of the container's first process."""
    on_not_simulated: Callable[[str], None] = lambda _: None
    """Called with what changes answers and is not simulated."""

    @property
    def is_running(self) -> bool:
        return self.runs or self.configuration is not None

    def accept(self, configuration: ServedConfiguration) -> None:
        """Answer by a configuration from now on."""
        self.configuration, self.is_starting = configuration, False
        for name in configuration.not_simulated:
            self.on_not_simulated(name)
