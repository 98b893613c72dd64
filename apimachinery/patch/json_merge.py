"""JSON merge patches (RFC 7386), as kube-apiserver applies them.

Upstream's library deviates from the RFC: it removes nulls, even inside lists, from a value that does not replace an object,
but not from a list or scalar that replaces one.
"""

from collections.abc import Mapping
from typing import Any

from mockube.apimachinery.piecewise import sorted_in_pieces, sorted_items

from . import gofmt
from .draft import equal
from .errors import UndecodablePatch


def apply(document: Mapping[str, Any], patch: Any) -> dict[str, Any]:
    """Apply a patch and return the new document.

    Objects that the patch reaches have sorted keys, and all others are unchanged. This order is visible in the message if
    the result is invalid.
    """
    if patch is None:
        raise UndecodablePatch("Invalid JSON Patch")
    if not isinstance(patch, dict):
        kind = gofmt.json_kind(patch)
        raise UndecodablePatch(
            f"error decoding patch: json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
        )
    return _merge(document, patch)


def _merge(document: Mapping[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    merged = dict(document)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged_value(merged.get(key), value)
    return {key: merged[key] for key in sorted_in_pieces(merged)}


def _merged_value(current: Any, value: Any) -> Any:
    if not isinstance(current, dict):
        return _without_nulls(value)
    return _merge(current, value) if isinstance(value, dict) else value


def _without_nulls(value: Any) -> Any:
    """Return a value without null members at any depth; null elements of lists stay."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in sorted_items(value) if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value


def diff(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the patch that changes `before` into `after`. Objects in `after` must have no null members."""
    patch: dict[str, Any] = {key: None for key in before if key not in after}
    for key, value in after.items():
        current = before.get(key)
        if isinstance(current, dict) and isinstance(value, dict):
            if nested := diff(current, value):
                patch[key] = nested
        elif key not in before or not equal(current, value):
            patch[key] = value
    return patch
