"""Requests of the API server to other servers, such as token issuers and webhooks, and their responses."""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol

import orjson
from msgspec import Struct, field

from mockube.apimachinery import gotext, status
from mockube.component_base.clock import Clock

from .wire.go_json import syntax_error

PREFERRED_ADDRESSES: Final = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
"""The types of a node's address at which its kubelet is reached, in the order in which they are tried."""
_MAX_QUOTED_CHARACTERS: Final = 2048
"""Characters of a response that an error quotes."""


class CallFailed(Exception):
    """A request had no response; the message is Go's."""


class Tls(Struct, frozen=True, kw_only=True):
    """The CA of the other server and the client certificate, in PEM. Without a CA, the system's CAs are trusted."""

    authority: bytes = b""
    certificate: bytes = b""
    key: bytes = b""
    server_name: str = ""
    insecure: bool = False


class OutgoingRequest(Struct, frozen=True, kw_only=True):
    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    tls: Tls = Tls()
    proxy: str = ""
    seconds: float = 30.0
    follows_redirects: bool = False


class RemoteResponse(Struct, frozen=True, kw_only=True):
    code: int
    reason: str
    headers: Mapping[str, str]
    """The names are in lower case."""
    body: bytes

    @property
    def status_line(self) -> str:
        return f"{self.code} {self.reason}".rstrip()


class Send(Protocol):
    async def __call__(self, request: OutgoingRequest, /) -> RemoteResponse:
        """Return the response, or raise CallFailed."""


RETRY_SECONDS: Final = 0.5
RETRY_FACTOR: Final = 1.5
ATTEMPTS: Final = 5
"""The maximum of attempts of a review whose responses have a transient code."""
_TRANSIENT: Final = frozenset({429, 500, 504})


class KubeconfigEndpoint(Struct, frozen=True, kw_only=True):
    """The address and the credentials in a kubeconfig."""

    url: str
    tls: Tls = Tls()
    headers: Mapping[str, str] = field(default_factory=dict)
    proxy: str = ""


class ReviewFailed(Exception):
    """A webhook returned no valid review. `is_timeout`: it took too long; `code`: its status code."""

    def __init__(self, problem: str, *, is_timeout: bool = False, code: int = 0) -> None:
        super().__init__(problem)
        self.is_timeout = is_timeout
        self.code = code


class Reviewer(Struct, frozen=True, kw_only=True):
    """Sends reviews to a webhook, and returns the status of its responses.

    `observe` is called with the result of each attempt.
    """

    endpoint: KubeconfigEndpoint
    send: Send
    clock: Clock
    seconds: float = 30.0
    retry_seconds: float = RETRY_SECONDS
    kind: str = ""
    """The Go name of the expected kind of a response; "" for any kind."""
    observe: Callable[[str, float], None] = lambda _result, _seconds: None

    async def review(self, review: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the status, or raise ReviewFailed."""
        body, delay = orjson.dumps(review), self.retry_seconds
        for attempt in range(1, ATTEMPTS + 1):
            began = self.clock.monotonic()
            try:
                answer = await self._post(body)
                review_status = _status_of(answer, self.kind)
            except ReviewFailed as error:
                self.observe("timeout" if error.is_timeout else "error", self.clock.monotonic() - began)
                raise
            except _BadStatus as error:
                self.observe("timeout" if error.code == 504 else "error", self.clock.monotonic() - began)
                if error.code not in _TRANSIENT or attempt == ATTEMPTS:
                    raise ReviewFailed(str(error), code=error.code) from error
            else:
                self.observe("success", self.clock.monotonic() - began)
                return review_status
            await self.clock.sleep(delay)
            delay *= RETRY_FACTOR
        raise AssertionError

    async def _post(self, body: bytes) -> RemoteResponse:
        endpoint = self.endpoint
        separator = "&" if "?" in endpoint.url else "?"
        request = OutgoingRequest(
            url=f"{endpoint.url}{separator}timeout={self.seconds:g}s",
            method="POST",
            headers={
                "Content-Type": "application/json",
                "Accept": "application/json, */*",
                **endpoint.headers,
            },
            body=body,
            tls=endpoint.tls,
            proxy=endpoint.proxy,
            seconds=self.seconds,
        )
        try:
            return await self.send(request)
        except CallFailed as error:
            raise ReviewFailed(str(error), is_timeout="deadline exceeded" in str(error)) from error


class _BadStatus(Exception):
    def __init__(self, problem: str, code: int) -> None:
        super().__init__(problem)
        self.code = code


def _status_of(answer: RemoteResponse, kind: str = "") -> Mapping[str, Any]:
    """Return the status of a review, or raise _BadStatus or ReviewFailed."""
    if answer.code >= 400:
        is_text = answer.headers.get("content-type", "").startswith("text/")
        message = gotext.decode_utf8(answer.body).strip() if is_text else "unknown"
        raise _BadStatus(
            str(status.generic(answer.code, server_message=message[:_MAX_QUOTED_CHARACTERS])), answer.code
        )
    try:
        tree = orjson.loads(answer.body)
    except orjson.JSONDecodeError as error:
        raise ReviewFailed(
            f"couldn't get version/kind; json parse error: {syntax_error(answer.body)}"
        ) from error
    if not isinstance(tree, dict) or not isinstance(tree.get("status") or {}, dict):
        raise ReviewFailed(
            "couldn't get version/kind; json parse error: json: cannot unmarshal into Go value"
        )
    answer_kind = f"{str(tree.get('apiVersion')).rpartition('/')[2]}.{tree.get('kind')}"
    if kind and tree.get("kind") and answer_kind != kind:
        raise ReviewFailed(f"converting ({answer_kind}) to ({kind}): unknown conversion")
    review_status: Mapping[str, Any] = tree.get("status") or {}
    return review_status


class OutgoingDependencies(NamedTuple):
    """The dependencies of admission plugins that call other servers."""

    send: Send
    clock: Clock
