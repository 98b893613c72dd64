"""The checks of a request before it is executed: etcd's own, with its limits as defaults.

They do not read the store. A valid request can still fail because of the store's state (a lease, a revision).
"""

from collections.abc import Sequence

from msgspec import Struct

from mockube.etcd.embedded.versions import holds
from mockube.etcd.errors import InvalidRequest, TooLarge
from mockube.etcd.kv import Delete, Operation, Put, Target, Txn


class Limits(Struct, frozen=True, kw_only=True):
    """etcd's own limits, which Kubernetes is built for."""

    request_bytes: int = 1536 * 1024
    operations: int = 128


def check_txn(request: Txn, limits: Limits) -> None:
    """Raise InvalidRequest or TooLarge unless etcd accepts such a transaction."""
    operation_count = max(len(request.compare), len(request.then), len(request.otherwise))
    if operation_count > limits.operations:
        raise TooLarge(f"transaction has {operation_count} operations, the limit is {limits.operations}")
    size = 0
    for compare in request.compare:
        check_key(compare.key)
        if isinstance(compare.operand, bytes) is not (compare.target is Target.VALUE):
            raise InvalidRequest(f"{compare.target.value} cannot be compared with {compare.operand!r}")
    for operations in (request.then, request.otherwise):
        for operation in operations:
            check_key(operation.key)
            if type(operation) is Put:
                size += len(operation.key) + len(operation.value)
        if len(operations) > 1:
            _check_no_overlap(operations)
    check_size(size, limits)


def check_key(key: bytes) -> None:
    if not key:
        raise InvalidRequest("key is empty")


def check_size(size: int, limits: Limits) -> None:
    if size > limits.request_bytes:
        raise TooLarge(f"request has {size} bytes, the limit is {limits.request_bytes}")


def _check_no_overlap(operations: Sequence[Operation]) -> None:
    """Refuse a request that changes a key twice: each revision may put or delete a key once."""
    puts = [operation.key for operation in operations if type(operation) is Put]
    if len(set(puts)) < len(puts):
        raise InvalidRequest("duplicate key in transaction: a key is put twice")
    for operation in operations:
        if type(operation) is Delete and any(holds(operation.key, operation.range_end, key) for key in puts):
            raise InvalidRequest("duplicate key in transaction: a key is both put and deleted")
