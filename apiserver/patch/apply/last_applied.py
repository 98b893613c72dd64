"""The annotation in which `kubectl apply` without `--server-side` stores the last applied configuration.

`kubectl apply --server-side` migrates from it: fields that are in the annotation and unchanged in the object cause no
conflict, and the annotation is updated, so that the user can return to client-side apply.
"""

from typing import Any, Final

import orjson

from mockube.apimachinery import gotext, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import ANNOTATION_LAST_APPLIED

from .atoms import Atom, TypedError
from .compare import compare
from .fieldset import EMPTY, FieldSet, difference
from .typed_fields import applied_fields
from .validate import validate

KUBECTL: Final = "kubectl"
"""The only manager for which the annotation is used."""

MAX_ANNOTATIONS_BYTES: Final = 256 * 1024
"""The limit of all annotations of an object (apimachinery/pkg/api/validation/objectmeta.go): a longer one is not written."""


def last_applied_fields(atom: Atom, live: ReadOnlyTree) -> FieldSet:
    """Return the fields of the annotation that are unchanged in the live object; the empty set if the annotation is invalid."""
    config = _config(meta.annotations(live).get(ANNOTATION_LAST_APPLIED, ""))
    if not meta.kind(config) or meta.api_version(config) != meta.api_version(live):
        return EMPTY
    try:
        validate(atom, live)
        validate(atom, config)
    except TypedError:
        return EMPTY
    fields = applied_fields(atom, config)
    for changed in compare(atom, config, live):
        fields = difference(fields, changed)
    return fields


def _config(text: str) -> ReadOnlyTree:
    try:
        config = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return config if isinstance(config, dict) else {}


def with_last_applied(obj: dict[str, Any], config: ReadOnlyTree) -> dict[str, Any]:
    """Return the object with its annotation updated, if it has one; without the annotation if that would be too large."""
    if not meta.annotations(obj).get(ANNOTATION_LAST_APPLIED):
        return obj
    applied = meta.with_annotations(obj, {ANNOTATION_LAST_APPLIED: _text(config)})
    size = sum(len(f"{key}{value}".encode()) for key, value in meta.annotations(applied).items())
    if size > MAX_ANNOTATIONS_BYTES:
        return meta.with_annotations(obj, {ANNOTATION_LAST_APPLIED: None})
    return applied


def _text(config: ReadOnlyTree) -> str:
    """Encode a configuration as kubectl does: without the annotation itself, on one line."""
    metadata = dict(meta.metadata(config))
    if "annotations" in metadata:
        annotations = meta.annotations(config).items()
        metadata["annotations"] = {key: value for key, value in annotations if key != ANNOTATION_LAST_APPLIED}
    text = orjson.dumps({**config, "metadata": metadata}, option=orjson.OPT_SORT_KEYS)
    return gotext.marshal(orjson.loads(text)) + "\n"
