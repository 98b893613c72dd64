"""Empty lists and maps that a client sent, for messages: stored objects do not have them, and Go's errors show them."""

from collections.abc import Callable, Sequence
from typing import Any

from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.registry.call import Call
from mockube.apiserver.wire.parse import Unreadable, parse

Check = Callable[[Tree], Sequence[FieldError]]


def show_empty_collections(
    call: Call, tree: Tree, wrong: Sequence[FieldError], check: Check
) -> Sequence[FieldError]:
    """Return the errors of an object as they are with the empty collections that were sent, if they are the same ones."""
    with_empty = with_empty_collections(call, tree)
    if with_empty is tree:
        return wrong
    again = check(with_empty)
    if _places(again) != _places(wrong):
        return wrong
    return [old if _is_api_struct(new.value) else new for old, new in zip(wrong, again, strict=True)]


def with_empty_collections(call: Call, tree: Tree) -> Tree:
    """Return an object with the empty collections that were sent; itself if there are none."""
    full: Tree = _with_empty(tree, call.patched if call.patched is not None else _body(call))
    return full


def _is_api_struct(value: Any) -> bool:
    """Whether a value is shown by the names of the API, in which Go leaves out what is empty, and not by Go's."""
    value = value[0] if isinstance(value, list) and value else value
    return isinstance(value, dict) and bool(value) and not next(iter(value))[:1].isupper()


def _places(wrong: Sequence[FieldError]) -> list[tuple[str, object]]:
    return [(error.field, error.type) for error in wrong]


def _body(call: Call) -> Any:
    try:
        return parse(call.body.data, call.body.media_type).tree
    except Unreadable:
        return None


def _is_empty(value: Any) -> bool:
    return isinstance(value, list | dict) and not value


def _with_empty(tree: Any, sent: Any) -> Any:
    """Return the value with the empty collections of what was sent where it has nothing; itself if there are none."""
    if isinstance(tree, dict) and isinstance(sent, dict):
        added = {name: value for name, value in sent.items() if _is_empty(value) and tree.get(name) is None}
        inner = {name: _with_empty(value, sent[name]) for name, value in tree.items() if name in sent}
        changed = {name: value for name, value in inner.items() if value is not tree[name]}
        return tree | added | changed if added or changed else tree
    if isinstance(tree, list) and isinstance(sent, list) and len(tree) == len(sent):
        items = [_with_empty(*pair) for pair in zip(tree, sent, strict=True)]
        return items if any(new is not old for new, old in zip(items, tree, strict=True)) else tree
    return tree
