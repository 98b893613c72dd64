"""Empty lists and maps that a client sent, for messages: stored objects do not have them, and Go's errors show them."""

from collections.abc import Callable, Sequence
from typing import Any, Final

from mockube.apimachinery.errors import ErrorType, FieldError
from mockube.apimachinery.schema.model import Shape, Type
from mockube.apimachinery.tree import Tree
from mockube.apiserver.registry.body import is_empty, sent_tree
from mockube.apiserver.registry.call import Call

Check = Callable[[Tree], Sequence[FieldError]]


def show_empty_collections(
    call: Call, tree: Tree, field_errors: Sequence[FieldError], check: Check
) -> Sequence[FieldError]:
    """Return the errors of an object as they are with the empty collections that were sent, if they are the same ones."""
    with_empty = _with_empty(tree, sent_tree(call))
    if with_empty is tree:
        return field_errors
    new_errors = check(with_empty)
    if _places(new_errors) != _places(field_errors):
        rest = [error for error in new_errors if not _refuses_any_value(error)]
        more = _places(rest) == _places([error for error in field_errors if not _refuses_any_value(error)])
        return new_errors if more else field_errors
    return [
        old if _is_api_struct(new.value) else new for old, new in zip(field_errors, new_errors, strict=True)
    ]


def has_more_empty(call: Call, of: Type, tree: Tree, names: Sequence[str]) -> bool:
    """Return whether a client sent empty collections or bytes in some of an object's fields that the object does not have."""
    sent = sent_tree(call)
    return isinstance(sent, dict) and _has_more_empty(
        of, tree, {name: sent[name] for name in names if name in sent}
    )


def _has_more_empty(of: Type, tree: Any, sent: Any) -> bool:
    if of.shape is Shape.STRUCT and isinstance(tree, dict) and isinstance(sent, dict):
        members = [
            (of.fields[name].type, tree.get(name), item) for name, item in sent.items() if name in of.fields
        ]
        return any(_is_missing(*member) or _has_more_empty(*member) for member in members)
    if (
        of.shape is Shape.LIST
        and isinstance(tree, list)
        and isinstance(sent, list)
        and len(tree) == len(sent)
    ):
        return any(_has_more_empty(of.items, *pair) for pair in zip(tree, sent, strict=True))
    return False


def _is_missing(of: Type, value: Any, sent: Any) -> bool:
    if of.shape is Shape.BYTES:
        return value is None and sent == ""
    return of.shape in (Shape.LIST, Shape.MAP) and not value and is_empty(sent) and value != sent


def _is_api_struct(value: Any) -> bool:
    """Whether a value is shown by the names of the API, in which Go leaves out what is empty, and not by Go's."""
    value = value[0] if isinstance(value, list) and value else value
    return isinstance(value, dict) and bool(value) and not next(iter(value))[:1].isupper()


def _refuses_any_value(error: FieldError) -> bool:
    """Return whether a field is refused that is set at all, as to an empty list."""
    return error.type is ErrorType.FORBIDDEN and error.detail.endswith(_ANY_VALUE)


_ANY_VALUE: Final = (
    "cannot be set",
    "cannot be set for an Ephemeral Container",
    "claims may not be set for Resources at pod-level",
)


def _places(field_errors: Sequence[FieldError]) -> list[tuple[str, object]]:
    return [(error.field, error.type) for error in field_errors]


def _with_empty(tree: Any, sent: Any) -> Any:
    """Return the value with the empty collections of what was sent where it has nothing; itself if there are none."""
    if isinstance(tree, dict) and isinstance(sent, dict):
        added = {name: value for name, value in sent.items() if is_empty(value) and tree.get(name) is None}
        inner = {name: _with_empty(value, sent[name]) for name, value in tree.items() if name in sent}
        changed = {name: value for name, value in inner.items() if value is not tree[name]}
        return tree | added | changed if added or changed else tree
    if isinstance(tree, list) and isinstance(sent, list) and len(tree) == len(sent):
        items = [_with_empty(*pair) for pair in zip(tree, sent, strict=True)]
        return items if any(new is not old for new, old in zip(items, tree, strict=True)) else tree
    return tree
