"""A request, independent of the transport, and the `RequestClient` that the transport provides.

Headers are decoded as UTF-8, with replacements as in Go; a transport returns surrogates for invalid bytes, which
neither JSON nor a log can encode.
"""

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Final, Protocol

from multidict import MultiMapping

from mockube.apimachinery import gotext, labels
from mockube.apimachinery.gotext import BOOLEANS
from mockube.apimachinery.labels import SelectorError
from mockube.apimachinery.names import check_path_segment_name
from mockube.apiserver.audit.audit import AuditedRequest
from mockube.apiserver.authn.authenticators import PeerCertificates
from mockube.apiserver.authz.chain import Attributes, DecisionAndReason
from mockube.apiserver.fields import FieldSelectorError
from mockube.apiserver.fields import parse as parse_field_selector
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.metrics.requests import Route
from mockube.apiserver.registry.request_context import RequestContext
from mockube.apiserver.registry.watch_stream import ClientWatch
from mockube.apiserver.request_info import RequestInfo
from mockube.apiserver.user import NO_USER, ImpersonatedUser, User
from mockube.etcd.kv import HEAD, Revision

from .response import Response

ACCEPT: Final = "Accept"
AUTHORIZATION: Final = "Authorization"
CONTENT_LENGTH: Final = "Content-Length"
CONTENT_TYPE: Final = "Content-Type"
TRANSFER_ENCODING: Final = "Transfer-Encoding"
_ACCEPT_ENCODING: Final = "Accept-Encoding"
_USER_AGENT: Final = "User-Agent"
_COLLECTION_VERBS: Final = frozenset({"list", "watch", "deletecollection"})
_NONE: Final = ("",)
_APPLY: Final = "application/apply-patch"
_HUMAN_USER_AGENTS: Final = ("curl", "Wget", "Mozilla/5.0")


Frame = Callable[[bytes], str | bytes]
"""Returns the message of a WebSocket for a part of a body: text or bytes."""


class BodySink(Protocol):
    """The sink of a streamed body. A write waits while the client reads too slowly."""

    async def begin(self) -> None: ...

    async def write(self, parts: Sequence[bytes], /) -> None: ...

    async def end(self) -> None: ...

    def release(self) -> None:
        """Release the resources of the stream, complete or not."""


class RequestClient(Protocol):
    """The client of a request: its address and certificate, the body, and where the response is written."""

    head: str
    """Header lines of the response in addition to `Response.headers`, each with its line end."""

    @property
    def uri(self) -> str:
        """Path and query, as sent."""

    @property
    def address(self) -> str:
        """The IP address of the client; "" if there is none."""

    @property
    def port(self) -> int:
        """The port of the client; 0 if there is none."""

    @property
    def is_secure(self) -> bool:
        """Whether the connection is encrypted."""

    @property
    def certificates(self) -> PeerCertificates | None: ...

    @property
    def has_body(self) -> bool: ...

    @property
    def is_cut(self) -> bool:
        """Whether the server closed the connection because the client did not read."""

    def set_authenticated(self) -> None:
        """Note that a request of this connection has been authenticated as a user."""

    def set_unauthenticated(self) -> None:
        """Let the connection count as unauthenticated while this request is served, unless one before it was authenticated."""

    def on_lost(self, callback: Callable[[], None] | None, /) -> None:
        """Set the function to call when the connection is lost; None for no function."""

    def abort(self) -> None:
        """Cut the connection."""

    async def read(self, limit: int, /) -> bytes:
        """Return the body; raise an ApiError if it is longer than `limit`."""

    async def write(self, response: Response, /) -> None:
        """Write a response that the handler returns afterwards; ConnectionError if the client has disconnected."""

    def stream(self, response: Response, /) -> BodySink:
        """Return a sink for the body of a response."""

    def messages(self, protocols: Sequence[str], frame: Frame, on_closed: Callable[[], None], /) -> BodySink:
        """Return a sink that sends parts as messages of a WebSocket; `on_closed` is called when the client closes it."""


class Request:
    """A request, and the results of its filters."""

    __slots__ = (
        "annotations",
        "audit_id",
        "audited",
        "authenticated",
        "client",
        "client_watch",
        "context",
        "credentials_end",
        "decision",
        "fault",
        "headers",
        "impersonated",
        "info",
        "is_aborted",
        "is_answered_by_fault",
        "is_cut",
        "is_in_flight",
        "is_repeated",
        "is_terminated",
        "method",
        "moment",
        "on_stream",
        "on_watch",
        "path",
        "query",
        "query_string",
        "read_revision",
        "resource",
        "route",
        "stream_status",
        "streamed_bytes",
        "user",
        "version",
    )

    def __init__(  # noqa: PLR0915 - one statement for each attribute
        self,
        method: str,
        path: str,
        query_string: str,
        headers: MultiMapping[str],
        client: RequestClient,
        *,
        version: tuple[int, int] = (1, 1),
    ) -> None:
        self.method = method
        self.path = path
        """The decoded path."""
        self.moment = ""
        """The moment of the past whose API is requested, as the path names it; "" for the present."""
        self.query_string = query_string
        self.headers = headers
        self.client = client
        self.version = version
        """The version of HTTP."""
        self.audit_id = ""
        """The id of the request in the audit log and in the response."""
        self.info = NO_INFO
        self.query: Mapping[str, Sequence[str]] = NO_QUERY
        self.resource: Resource | None = None
        """None for a path that is not of a resource."""
        self.authenticated = NO_USER
        """The user whose credentials were sent."""
        self.credentials_end: float | None = None
        """When their token expires, in seconds since 1970 by the cluster's clock; None if that is not known."""
        self.user: User = NO_USER
        """The user of the request: authenticated, or impersonated."""
        self.impersonated: ImpersonatedUser | None = None
        self.decision: DecisionAndReason | None = None
        """The decision of the authorizer; None before authorization."""
        self.annotations: dict[str, str] = {}
        """Annotations of its audit event."""
        self.is_in_flight = False
        """Whether it counts as in flight, until its response is written."""
        self.audited: AuditedRequest | None = None
        """What the audit log contains of the request; None if nothing."""
        self.on_stream: Callable[[int], None] | None = None
        """Called with the status when a streamed response begins."""
        self.stream_status = 0
        """The status of a streamed response that has begun; 0 before."""
        self.streamed_bytes = 0
        """The bytes of the body of a streamed response."""
        self.route: Route | None = None
        """What metrics count it as; None until it has reached an endpoint that is counted."""
        self.is_aborted = False
        """Whether the connection was cut while its response was written."""
        self.is_terminated = False
        """Whether the server ended it to protect itself."""
        self.client_watch: ClientWatch | None = None
        """The watch that it has opened."""
        self.on_watch: list[Callable[[ClientWatch], None]] = []
        """Called with its watch when that is opened."""
        self.is_repeated = False
        """Whether a Fault lets it be executed once more."""
        self.read_revision: Revision = HEAD
        """The revision at which a get or a list reads the store, and at which a watch begins."""
        self.fault = ""
        """The name of the fault that was injected into it."""
        self.is_answered_by_fault = False
        """Whether that fault has given the response."""
        self.is_cut = False
        """Whether that fault has cut the connection, in place of a response or during one."""
        self.context: RequestContext | None = None
        """The request for a resource, after its body was read."""

    def header(self, name: str) -> str:
        """Return the first header of a name; "" if there is none."""
        value = self.headers.get(name, "")
        return value if value.isascii() else self.text(value)

    @staticmethod
    def text(value: str) -> str:
        """Return the value of a header as text that can be encoded."""
        return value if value.isascii() else gotext.decode_utf8(value.encode("utf-8", "surrogateescape"))

    def stream(self, response: Response) -> BodySink:
        """Return a sink for the body of a response."""
        self.begin_stream(response.status)
        return self.client.stream(response)

    def messages(self, protocols: Sequence[str], frame: Frame, on_closed: Callable[[], None]) -> BodySink:
        """Return a sink for messages of a WebSocket."""
        self.begin_stream(HTTPStatus.SWITCHING_PROTOCOLS)
        return self.client.messages(protocols, frame, on_closed)

    def begin_stream(self, status: int) -> None:
        """Report the start of a response that ends later."""
        self.stream_status = status
        if self.on_stream is not None:
            self.on_stream(status)

    def attributes(self) -> Attributes:
        """Return the attributes of the request for authorizers."""
        info = self.info
        field_selector = label_selector = ""
        # Upstream ignores the selectors of the old paths of watches.
        if self.query and info.verb in _COLLECTION_VERBS and not info.prefix:
            field_selector = self.query.get("fieldSelector", _NONE)[0]
            label_selector = self.query.get("labelSelector", _NONE)[0]
        return Attributes(
            user=self.user,
            verb=info.verb,
            path=info.path,
            group=info.group,
            version=info.version,
            resource=info.resource,
            subresource=info.subresource,
            namespace=info.namespace,
            name=self.name,
            field_selector=field_selector,
            label_selector=label_selector,
        )

    @property
    def name(self) -> str:
        """The name of the object: that of the path, or the only one that a list or watch selects."""
        info, query = self.info, self.query
        if info.name or info.prefix or not query or info.verb not in ("list", "watch"):
            return info.name
        name = _selected_name(query.get("fieldSelector", _NONE)[0])
        return name if name and _has_valid_options(query) else ""

    @property
    def uri(self) -> str:
        return self.client.uri

    @property
    def source(self) -> str:
        return self.client.address

    @property
    def user_agent(self) -> str:
        return self.header(_USER_AGENT)

    @property
    def wants_pretty(self) -> bool:
        """Whether JSON is indented: by ?pretty, and otherwise for curl, wget and browsers."""
        value = self.query.get("pretty", ("",))[0]
        return BOOLEANS.get(value, False) if value else self.user_agent.startswith(_HUMAN_USER_AGENTS)

    @property
    def accepts_gzip(self) -> bool:
        """Whether the client accepts gzip; weights are ignored, as upstream ignores them."""
        return any(token.strip() == "gzip" for token in self.header(_ACCEPT_ENCODING).split(","))

    @property
    def is_dry_run(self) -> bool:
        return "dryRun" in self.query

    @property
    def applies(self) -> bool:
        return self.info.verb == "patch" and self.header(CONTENT_TYPE).startswith(_APPLY)

    @property
    def is_websocket(self) -> bool:
        if self.headers.get("Upgrade", "").lower() != "websocket":
            return False
        connection = self.headers.get("Connection", "").lower()
        return "upgrade" in {word.strip() for word in connection.split(",")}

    @property
    def subprotocols(self) -> Sequence[str]:
        """The subprotocols that a WebSocket client offers."""
        lines = self.headers.getall(SUBPROTOCOL, [])
        return [protocol for line in lines for part in line.split(",") if (protocol := part.strip())]


def _selected_name(field_selector: str) -> str:
    """Return the name that a list or watch is limited to; "" if it is not limited to one."""
    if not field_selector:
        return ""
    try:
        name = parse_field_selector(field_selector).requires_exact_match("metadata.name")
    except FieldSelectorError:
        return ""
    return "" if name is None or check_path_segment_name(name) else name


def _has_valid_options(query: Mapping[str, Sequence[str]]) -> bool:
    """Return whether upstream can decode the options of a list besides its field selector: otherwise it ignores all of them."""
    try:
        for number in ("limit", "timeoutSeconds"):
            if number in query:
                gotext.parse_int(query[number][0])
        labels.parse(query.get("labelSelector", _NONE)[0])
    except (gotext.NumberError, SelectorError):
        return False
    return True


SUBPROTOCOL: Final = "Sec-WebSocket-Protocol"
NO_INFO: Final = RequestInfo(path="", verb="")
NO_QUERY: Final[Mapping[str, Sequence[str]]] = {}
