"""The annotation in which `kubectl apply` without `--server-side` keeps what was applied last.

`kubectl apply --server-side` takes over from it: what is in the annotation and still in the object counts as the
manager's own, and the annotation is kept up to date for a way back.
"""

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import orjson

from mockube.apimachinery import gotext, meta
from mockube.apimachinery.patch.apply.atoms import Atom, TypedError
from mockube.apimachinery.patch.apply.compare import compare
from mockube.apimachinery.patch.apply.fieldset import EMPTY, FieldSet, difference
from mockube.apimachinery.patch.apply.places import applied_fields
from mockube.apimachinery.patch.apply.validate import validate
from mockube.apimachinery.wellknown import ANNOTATION_LAST_APPLIED

Json: TypeAlias = Mapping[str, Any]

KUBECTL: Final = "kubectl"
"""The only manager for which this is done."""

MAX_ANNOTATIONS_BYTES: Final = 256 * 1024


def last_applied_fields(atom: Atom, live: Json) -> FieldSet:
    """What is in the annotation and still in the live object: nothing, if the annotation is unusable."""
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


def _config(text: str) -> Json:
    try:
        config = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return config if isinstance(config, dict) else {}


def with_last_applied(obj: dict[str, Any], config: Json) -> dict[str, Any]:
    """The object with what was applied now in its annotation, if it has one and there is room."""
    if not meta.annotations(obj).get(ANNOTATION_LAST_APPLIED):
        return obj
    applied = meta.with_annotations(obj, {ANNOTATION_LAST_APPLIED: _text(config)})
    size = sum(len(f"{key}{value}".encode()) for key, value in meta.annotations(applied).items())
    if size > MAX_ANNOTATIONS_BYTES:
        return meta.with_annotations(obj, {ANNOTATION_LAST_APPLIED: None})
    return applied


def _text(config: Json) -> str:
    """The object as kubectl writes it: everything but the annotation itself, on one line."""
    metadata = dict(meta.metadata(config))
    if "annotations" in metadata:
        annotations = meta.annotations(config).items()
        metadata["annotations"] = {key: value for key, value in annotations if key != ANNOTATION_LAST_APPLIED}
    text = orjson.dumps({**config, "metadata": metadata}, option=orjson.OPT_SORT_KEYS)
    return gotext.marshal(orjson.loads(text)) + "\n"
