"""JSON patches (RFC 6902), as kube-apiserver applies them.

Upstream's library is more lenient than the RFC, and clients rely on it: a negative index counts from the end, `replace`
sets a missing member, `copy` of a missing member adds null, and `test` treats a missing member as null. Clients receive
the texts of its errors.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from mockube.apimachinery.patch import gofmt
from mockube.apimachinery.patch.draft import (
    MAX_COPIED_BYTES,
    Container,
    Draft,
    delete,
    equal,
    insert,
    read,
    write,
)
from mockube.apimachinery.patch.errors import (
    PatchNotApplicable,
    TestFailed,
    TooManyOperations,
    UndecodablePatch,
)

MAX_OPERATIONS: Final = 10_000
"""As upstream (apiserver/pkg/endpoints/handlers/patch.go)."""

Operation: TypeAlias = Mapping[str, Any]

_TEXT_FIELDS = ("op", "path", "from")
_FIELDS = frozenset({*_TEXT_FIELDS, "value"})


def check(patch: Any) -> list[str]:
    """Raise `UndecodablePatch` unless a patch is a list of operations; return the errors about unknown fields of operations.

    Upstream skips this check if field validation is `Ignore`; then `apply` finds the error and has another message.
    """
    strict_errors = []
    for number, operation in enumerate(_expect_type(patch, list, "[]handlers.jsonPatchOp")):
        for name, value in _expect_type(operation, dict, "handlers.jsonPatchOp").items():
            if name in _TEXT_FIELDS:
                _expect_type(value, str, "string", f"Go struct field jsonPatchOp.{name}")
            elif name not in _FIELDS:
                strict_errors.append(f'json patch unknown field "[{number}].{name}"')
    return strict_errors


def max_growth(patch: Any) -> int:
    """Return the maximum number of bytes that a patch's `copy` operations can add to a document."""
    copies = (
        any(isinstance(operation, dict) and operation.get("op") == "copy" for operation in patch)
        if isinstance(patch, list)
        else False
    )
    return MAX_COPIED_BYTES if copies else 0


def _expect_type(value: Any, expected_type: type, name: str, target: str = "Go value") -> Any:
    """Return a value of the expected type; for null, the type's empty value."""
    if value is None:
        return expected_type()
    if isinstance(value, expected_type):
        return value
    raise UndecodablePatch(
        f"error decoding patch: json: cannot unmarshal {gofmt.json_kind(value)} into {target} of type {name}"
    )


def apply(document: Container, patch: Any) -> Any:
    """Apply all operations and return the new document, or raise `PatchError`; `document` does not change.

    Objects that an operation reaches have sorted keys, and all others are unchanged. This order is visible in the message
    if the result is invalid.
    """
    operations = _operations(patch)
    if len(operations) > MAX_OPERATIONS:
        raise TooManyOperations(MAX_OPERATIONS, len(operations))
    draft = Draft(document)
    for operation in operations:
        kind = operation.get("op")
        apply_operation = _OPERATIONS.get(kind) if isinstance(kind, str) else None
        if apply_operation is None:
            raise PatchNotApplicable(f"Unexpected kind: {kind if isinstance(kind, str) else 'unknown'}")
        apply_operation(draft, operation)
    return draft.finish()


def _operations(patch: Any) -> list[Operation]:
    for value, expected_type, name in [
        (patch, list, "Patch"),
        *((item, dict, "Operation") for item in patch or ()),
    ]:
        if not isinstance(value, expected_type | None):
            raise UndecodablePatch(
                f"json: cannot unmarshal {gofmt.json_kind(value)} into Go value of type jsonpatch.{name}"
            )
    return [operation or {} for operation in patch or ()]


# --- the operations

_WITHOUT_PATH_IN_ERRORS = frozenset({"add", "remove", "copy"})
"""The operations whose errors do not contain their path."""

_MISSING = {
    "path": "operation missing path field: missing value",
    "from": "operation, missing from field: missing value",
}


def _location(operation: Operation, field: str = "path") -> str:
    location = operation.get(field)
    if isinstance(location, str):
        return location
    kind = operation["op"]
    if field == "path" and kind in _WITHOUT_PATH_IN_ERRORS:
        reason = "missing value"
    elif location is None:
        reason = _MISSING[field]
    else:
        reason = f"json: cannot unmarshal {gofmt.json_kind(location)} into Go value of type string"
    raise PatchNotApplicable(f"{kind} operation failed to decode {field}: {reason}")


def _find_container(draft: Draft, operation: Operation, location: str, problem: str) -> tuple[Container, str]:
    container = draft.container(location)
    if container is None:
        raise PatchNotApplicable(f"{operation['op']} operation does not apply: {problem}: missing value")
    return container


@contextmanager
def _prefix_errors(explanation: str) -> Iterator[None]:
    try:
        yield
    except PatchNotApplicable as error:
        raise PatchNotApplicable(f"{explanation}: {error}") from None


def _add(draft: Draft, operation: Operation) -> None:
    path = _location(operation)
    container, step = _find_container(draft, operation, path, f'doc is missing path: "{path}"')
    with _prefix_errors(f"error in add for path: '{path}'"):
        insert(container, step, operation.get("value"))


def _remove(draft: Draft, operation: Operation) -> None:
    path = _location(operation)
    container, step = _find_container(draft, operation, path, f'doc is missing path: "{path}"')
    with _prefix_errors(f"error in remove for path: '{path}'"):
        delete(container, step)


def _replace(draft: Draft, operation: Operation) -> None:
    path = _location(operation)
    value = operation.get("value")
    if path == "":
        if not isinstance(value, dict | list):
            raise PatchNotApplicable("replace operation value must be object or array: %!w(<nil>)")
        draft.root = draft.writable_copy(value)
        return
    container, step = _find_container(draft, operation, path, f"doc is missing path: {path}")
    try:
        write(container, step, value)
    except PatchNotApplicable:
        problem = f"doc is missing key: {path}"
        raise PatchNotApplicable(f"replace operation does not apply: {problem}: missing value") from None


def _move(draft: Draft, operation: Operation) -> None:
    source = _location(operation, "from")
    container, step = _find_container(draft, operation, source, f"doc is missing from path: {source}")
    with _prefix_errors(f"error in move for path: '{step}'"):
        value = read(container, step)
        delete(container, step)
    path = _location(operation)
    container, step = _find_container(draft, operation, path, f"doc is missing destination path: {path}")
    with _prefix_errors(f"error in move for path: '{path}'"):
        insert(container, step, value)


def _copy(draft: Draft, operation: Operation) -> None:
    source = _location(operation, "from")
    container, step = _find_container(draft, operation, source, f"doc is missing from path: {source}")
    with _prefix_errors(f"error in copy for from: '{source}'"):
        read(container, step)
    path = _location(operation)
    source_step = container, step
    container, step = _find_container(draft, operation, path, f"doc is missing destination path: {path}")
    # Read again: the search for the destination may have replaced the value by a copy.
    copy = draft.copy(read(*source_step))
    with _prefix_errors("error while adding value during copy"):
        insert(container, step, copy)


def _test(draft: Draft, operation: Operation) -> None:
    path = _location(operation)
    actual: Any = draft.root
    container, step = actual, ""
    if path != "":
        container, step = _find_container(draft, operation, path, f"is missing path: {path}")
        with _prefix_errors(f"error in test for path: '{path}'"):
            actual = read(container, step)
    if not equal(actual, operation.get("value")):
        raise TestFailed(f"testing value {path} failed: test failed")
    reached = draft.deep_writable_copy(actual)
    if path != "" and reached is not actual:
        write(container, step, reached)


_OPERATIONS: Final[Mapping[str, Callable[[Draft, Operation], None]]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}
