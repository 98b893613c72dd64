"""Map etcd's errors to `mockube.etcd.errors` by their messages and gRPC codes.

Callers distinguish failures by class. `outcome_unknown` is false only if etcd certainly did not execute the request.
The store, which has the request, adds the revisions to an error.
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
    """etcd does not accept this token, or not any more: authenticate and retry."""


class NotTrusted(Unavailable):
    """The client or the server refused the other's certificate. A retry would fail, too."""


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
    # Proposed, without a response: it may be executed later.
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
"""For messages that are not listed above. Any other code leaves the outcome unknown."""


class _Refusal(Struct):
    """An error in the gateway's form; inside a stream it is an object instead of the text."""

    error: "str | _Refusal" = ""
    message: str = ""
    code: int = 0
    grpc_code: int = 0


_decode_refusal = msgspec.json.Decoder(_Refusal).decode


def error_of(message: str, code: int = 0) -> KVError:
    """Return the error of a message, which gRPC's text may surround."""
    text = (message.partition(" desc = ")[2] or message).removeprefix("etcdserver: ")
    return (_BY_TEXT.get(text) or _BY_CODE.get(code, Interrupted))(message)


def error_of_answer(body: bytes, status: int) -> KVError:
    """Return the error of an HTTP response other than 200."""
    try:
        refusal = _decode_refusal(body)
    except msgspec.MsgspecError:
        return _not_a_gateway(body, status)
    while isinstance(refusal.error, _Refusal):
        refusal = refusal.error
    return error_of(refusal.message or refusal.error, refusal.code or refusal.grpc_code)


def _not_a_gateway(body: bytes, status: int) -> KVError:
    """Return the error of a response from a proxy, or from an etcd whose JSON gateway is off or refuses this client."""
    message = f"HTTP {status}: {body[:200].decode(errors='replace').strip()}"
    return Interrupted(message) if status >= HTTPStatus.INTERNAL_SERVER_ERROR else Unsupported(message)
