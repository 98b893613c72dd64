"""What a program in a container asks of the network, and the replies: data that crosses the shell as MessagePack."""

from collections.abc import Awaitable, Callable

from msgspec import Struct, msgpack

Header = tuple[str, str]
NetworkCaller = Callable[[bytes], Awaitable[bytes]]
"""Answers the encoded calls of the programs of one pod."""


class Lookup(Struct, frozen=True, kw_only=True, tag=True):
    """A query of a name server for an absolute name."""

    server: str
    name: str
    record_type: str = "A"
    protocol: str = "UDP"


class Login(Struct, frozen=True, kw_only=True):
    """How a client of a database authenticates."""

    user: str = ""
    password: str = ""
    is_trusted: bool = False
    """Whether the server asks for no password."""


class Connect(Struct, frozen=True, kw_only=True, tag=True):
    """A connection to a port; protocol ICMP is an echo request."""

    address: str
    port: int = 0
    protocol: str = "TCP"
    data: bytes = b""
    """What the client sends first."""
    login: Login | None = None
    """The credentials of a client that speaks the protocol of a database, which are checked by the variables of the server."""
    seconds: float = 0.0
    """How long the client of a database keeps the connection open."""


class Open(Struct, frozen=True, kw_only=True, tag=True):
    """A connection of TCP that stays open; the reply has its socket, or none if nobody knows what the server does."""

    address: str
    port: int


class ListenOn(Struct, frozen=True, kw_only=True, tag=True):
    """A socket that listens on a port of the pod."""

    port: int


class Accept(Struct, frozen=True, kw_only=True, tag=True):
    """A look at a socket that listens; the reply has the socket of the next client, or none if there is none yet."""

    socket: int


class Exchange(Struct, frozen=True, kw_only=True, tag=True):
    """Data that is sent over a connection; the reply has what has arrived."""

    socket: int
    data: bytes = b""
    is_last: bool = False
    """Whether nothing more is sent."""


class TakeReply(Struct, frozen=True, kw_only=True, tag=True):
    """A look whether a call has its reply that waits for a program."""

    socket: int


class HttpRequest(Struct, frozen=True, kw_only=True, tag=True):
    """A request over a connection to a port."""

    address: str
    port: int
    method: str
    path: str
    headers: tuple[Header, ...] = ()
    body: bytes = b""
    uses_tls: bool = False
    certificate: bytes = b""
    """The certificate of the client as PEM, which only the API server reads."""
    key: bytes = b""


class ServeNames(Struct, frozen=True, kw_only=True, tag=True):
    """A name server that has read its Corefile, which is valid."""

    corefile: str
    path: str


class ListSockets(Struct, frozen=True, kw_only=True, tag=True):
    """A list of the ports on which the programs of the pod listen, as JSON."""


class NodeRequest(Struct, frozen=True, kw_only=True, tag=True):
    """A request of a program of a node to a service of the machine, such as the container runtime."""

    service: str
    arguments: bytes = b"{}"
    """The arguments as JSON."""


SocketCall = ListenOn | Accept | Exchange | TakeReply
"""The calls about sockets of the program itself."""
ClusterCall = Lookup | Connect | Open | HttpRequest | ServeNames
"""The calls that others in the cluster answer."""
Call = ClusterCall | ListSockets | NodeRequest | SocketCall


WAITING = "waiting"
"""The outcome of a call whose reply comes later."""


class Reply(Struct, frozen=True, kw_only=True):
    """The reply to any call; only the fields that belong to the call are set."""

    outcome: str
    """The value of a `services.Outcome`; of a service of a node "open" or "failed", whose message is the body; or WAITING."""
    problem: str = ""
    """What the network does not simulate, if that is why there is no other reply."""
    exists: bool = False
    """Whether a name exists."""
    code: str = ""
    """The response code of a name server, such as SERVFAIL, if it is not that of a name that exists or does not."""
    records: tuple[tuple[str, str, str], ...] = ()
    """Name, type and value of each record of a name."""
    speaks: str = ""
    """The protocol that the server on a port speaks, such as http or redis; empty if it is unknown."""
    uses_tls: bool = False
    is_denied: bool = False
    """Whether the server refuses the credentials."""
    is_full: bool = False
    """Whether the server of a database has too many connections."""
    is_certificate_known: bool = True
    """Whether anybody knows which certificate the server has."""
    authority: bytes = b""
    """The CA certificates that sign the server's; empty if no client knows them."""
    certificate: bytes = b""
    """The certificates of the server as PEM, if its configuration names them."""
    status: int = 0
    reason: str = ""
    headers: tuple[Header, ...] = ()
    body: bytes = b""
    socket: int = 0
    """The socket that was opened, or that has the reply to a call which waits for a program; 0 without one."""
    has_room: bool = True
    """Whether more may be sent over a connection now."""
    is_ended: bool = False
    """Whether nothing more arrives over a connection."""

    @property
    def is_open(self) -> bool:
        return self.outcome == "open"

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name.lower()), "")


encode_call = msgpack.Encoder().encode
_decoder = msgpack.Decoder(Call)
encode_reply = msgpack.Encoder().encode


def decode_call(data: bytes) -> Call:
    call: Call = _decoder.decode(data)
    return call


decode_reply = msgpack.Decoder(Reply).decode
