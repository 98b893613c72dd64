import orjson
import pytest

from mockube.etcd.errors import (
    Interrupted,
    InvalidRequest,
    LeaseExists,
    LeaseNotFound,
    NoSpace,
    PermissionDenied,
    Timeout,
    TooLarge,
    Unavailable,
    Unsupported,
)
from mockube.etcd.remote.errors import (
    RevisionCompacted,
    RevisionInFuture,
    TokenRejected,
    error_of,
    error_of_answer,
)


@pytest.mark.parametrize(
    ("code", "text", "error"),
    [
        (3, "etcdserver: key is not provided", InvalidRequest),
        (3, "etcdserver: duplicate key given in txn request", InvalidRequest),
        (11, "etcdserver: too large lease TTL", InvalidRequest),
        (3, "etcdserver: request is too large", TooLarge),
        (3, "etcdserver: too many operations in txn request", TooLarge),
        (8, "grpc: received message larger than max (9 vs. 4)", TooLarge),
        (11, "etcdserver: mvcc: required revision has been compacted", RevisionCompacted),
        (11, "etcdserver: mvcc: required revision is a future revision", RevisionInFuture),
        (8, "etcdserver: mvcc: database space exceeded", NoSpace),
        (5, "etcdserver: requested lease not found", LeaseNotFound),
        (9, "etcdserver: lease already exists", LeaseExists),
        (7, "etcdserver: permission denied", PermissionDenied),
        (3, "etcdserver: user name is empty", PermissionDenied),
        (3, "etcdserver: authentication failed, invalid user ID or password", PermissionDenied),
        (16, "etcdserver: invalid auth token", TokenRejected),
        (3, "etcdserver: revision of auth store is old", TokenRejected),
        (14, "etcdserver: no leader", Unavailable),
        (8, "etcdserver: too many requests", Unavailable),
        (14, "etcdserver: request timed out", Timeout),
        (14, "etcdserver: request timed out, possibly due to previous leader failure", Timeout),
        (14, "etcdserver: leader changed", Interrupted),
        (14, "etcdserver: server stopped", Interrupted),
        (14, "transport is closing", Interrupted),
        (2, "something never said before", Interrupted),
        (3, "something that makes no sense", InvalidRequest),
        (12, "unknown method", Unsupported),
    ],
)
def test_etcd_errors_are_mapped(code, text, error):
    body = orjson.dumps({"error": text, "code": code, "message": text})
    raised = error_of_answer(body, 400)
    assert type(raised) is error
    assert str(raised) == text


def test_wrapped_grpc_error_is_mapped():
    wrapped = "rpc error: code = Unauthenticated desc = etcdserver: invalid auth token"
    assert type(error_of(wrapped)) is TokenRejected


def test_error_inside_stream_is_mapped():
    body = b'{"error":{"grpc_code":7,"http_code":403,"message":"etcdserver: permission denied"}}'
    assert type(error_of_answer(body, 200)) is PermissionDenied


@pytest.mark.parametrize(
    ("status", "error"),
    [
        pytest.param(404, Unsupported, id="no gateway at the address"),
        pytest.param(502, Interrupted, id="proxy without a response from upstream"),
    ],
)
def test_non_etcd_answer_is_quoted(status, error):
    raised = error_of_answer(b"Not Found\n", status)
    assert type(raised) is error
    assert str(raised) == f"HTTP {status}: Not Found"
