"""etcd's refusals, by their texts and gRPC codes, as the errors of `mockube.etcd.errors`.

Two things decide: callers must be able to distinguish failures by class, and `outcome_unknown` must be false only
where etcd certainly did not carry the request out. Knows nothing of requests: revisions that an error should name are
filled in by the store.
"""

from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from msgspec import Struct

from mockube.etcd.errors import (
    Interrupted,
    InvalidRequest,
    KVError,
    LeaseExists,
    LeaseNotFound,
    NoSpace,
    PermissionDenied,
    Timeout,
    TooLarge,
    Unavailable,
    Unsupported,
)


class RevisionCompacted(KVError):
    """`Compacted`, before the requested revision and the compact revision are known."""


class RevisionInFuture(KVError):
    """`FutureRevision`, before the requested revision and the current one are known."""


class TokenRejected(PermissionDenied):
    """etcd does not accept this token (any more): authenticate and retry."""


class NotTrusted(Unavailable):
    """A certificate was not accepted, by us or by the server. It will not be a moment later."""


_BY_TEXT: Mapping[str, type[KVError]] = {
    "key is not provided": InvalidRequest,
    "duplicate key given in txn request": InvalidRequest,
    "too large lease TTL": InvalidRequest,
    "mvcc: watcher range is empty": InvalidRequest,
    "request is too large": TooLarge,
    "too many operations in txn request": TooLarge,
    "mvcc: required revision has been compacted": RevisionCompacted,
    "mvcc: required revision is a future revision": RevisionInFuture,
    "mvcc: database space exceeded": NoSpace,
    "requested lease not found": LeaseNotFound,
    "lease already exists": LeaseExists,
    "permission denied": PermissionDenied,
    "user name is empty": PermissionDenied,
    "authentication failed, invalid user ID or password": PermissionDenied,
    "authentication is not enabled": PermissionDenied,
    "invalid auth token": TokenRejected,
    "revision of auth store is old": TokenRejected,
    # Refused before the request was proposed to the members.
    "no leader": Unavailable,
    "not capable": Unavailable,
    "too many requests": Unavailable,
    "rpc not supported for learner": Unavailable,
    "corrupt cluster": Unavailable,
    # Proposed, without a response: it may yet be carried out.
    "request timed out": Timeout,
    "request timed out, possibly due to previous leader failure": Timeout,
    "request timed out, possibly due to connection lost": Timeout,
    "leader changed": Interrupted,
    "server stopped": Interrupted,
}

_BY_CODE: Mapping[int, type[KVError]] = {
    3: InvalidRequest,  # InvalidArgument
    4: Timeout,  # DeadlineExceeded
    7: PermissionDenied,
    8: TooLarge,  # ResourceExhausted: gRPC's own limits on messages
    9: InvalidRequest,  # FailedPrecondition
    11: InvalidRequest,  # OutOfRange
    12: Unsupported,  # Unimplemented
    16: TokenRejected,  # Unauthenticated
}
"""For texts that etcd may say besides those above. Any other code leaves the outcome unknown."""


class _Refusal(Struct):
    """A refusal as the gateway words it; inside a stream it is an object in the place of the text."""

    error: "str | _Refusal" = ""
    message: str = ""
    code: int = 0
    grpc_code: int = 0


_decode_refusal = msgspec.json.Decoder(_Refusal).decode


def error_of(message: str, code: int = 0) -> KVError:
    """What etcd means by a message, which may come wrapped in gRPC's words."""
    text = (message.partition(" desc = ")[2] or message).removeprefix("etcdserver: ")
    return (_BY_TEXT.get(text) or _BY_CODE.get(code, Interrupted))(message)


def error_of_answer(body: bytes, status: int) -> KVError:
    """What an HTTP answer other than 200 means."""
    try:
        refusal = _decode_refusal(body)
    except msgspec.MsgspecError:
        return _not_a_gateway(body, status)
    while isinstance(refusal.error, _Refusal):
        refusal = refusal.error
    return error_of(refusal.message or refusal.error, refusal.code or refusal.grpc_code)


def _not_a_gateway(body: bytes, status: int) -> KVError:
    """The error for an answer of a proxy, or of an etcd whose JSON gateway is off or refuses this client."""
    message = f"HTTP {status}: {body[:200].decode(errors='replace').strip()}"
    return Interrupted(message) if status >= HTTPStatus.INTERNAL_SERVER_ERROR else Unsupported(message)
