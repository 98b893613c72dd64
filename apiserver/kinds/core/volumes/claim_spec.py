"""Checks and columns that PersistentVolumes and PersistentVolumeClaims share, and the checks of claim templates."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from mockube.apimachinery import errors, meta, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apimachinery.wellknown import ANNOTATION_BETA_STORAGE_CLASS
from mockube.apiserver.kinds.common import checks
from mockube.apiserver.kinds.common.cells import text
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.objectmeta import check_annotations, check_labels
from mockube.apiserver.kinds.common.resource_names import STORAGE, check_amount, check_positive
from mockube.apiserver.kinds.common.selectors import check_selector, check_selector_leniently

READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"
ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", READ_WRITE_ONCE_POD)
VOLUME_MODES: Final = ("Block", "Filesystem")

_check_class_name: Final = checks.report(names.check_dns1123_subdomain)


def check_access_modes(modes: Sequence[str] | None, path: Path) -> Iterator[FieldError]:
    """Check access modes. ReadWriteOncePod excludes the others."""
    for mode in modes or ():
        yield from checks.one_of(*ACCESS_MODES)(mode, path)
    known_modes = {*(modes or ())} & {*ACCESS_MODES}
    if READ_WRITE_ONCE_POD in known_modes and len(known_modes) > 1:
        yield errors.forbidden(path, f"may not use {READ_WRITE_ONCE_POD} with other access modes")


def _check_storage(resources: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    amount, path = (resources.get("requests") or {}).get(STORAGE), path.key(STORAGE)
    if amount is None:
        return (errors.required(path),)
    return [*check_positive(amount, path)] or check_amount(STORAGE, amount, path)


# --- data sources

_CLAIM: Final = "PersistentVolumeClaim"


def _check_group(source: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    kind = source.get("kind", "")
    if source.get("apiGroup") or kind == _CLAIM:
        return ()
    return (errors.invalid(path, kind, f"must be '{_CLAIM}' when referencing the default apiGroup"),)


_DATA_SOURCE: Final = checks.all_of(checks.require("name"), checks.require("kind"), _check_group)
_GROUP: Final = checks.optional("apiGroup", checks.report(names.check_dns1123_subdomain))
_NAMESPACE: Final = checks.optional("namespace", checks.report(names.check_dns1123_label))


def _check_same_source(spec: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    """Check that both fields have the same source. The value in upstream's errors is a path, which is encoded as {}."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is None or reference is None:
        return ()
    if reference.get("namespace"):
        problem = "may not be specified when dataSourceRef.namespace is specified"
        return (errors.invalid(path, {}, problem),)
    if all(source.get(name) == reference.get(name) for name in ("apiGroup", "kind", "name")):
        return ()
    return (errors.invalid(path, {}, "must match dataSourceRef"),)


# --- specs


def _spec(selector: Check, group: Check) -> Check:
    return checks.all_of(
        checks.require("accessModes", detail="at least 1 access mode is required"),
        checks.pointer("selector", selector),
        checks.field("accessModes", check_access_modes),
        checks.field("resources", _check_storage, absent={}),
        checks.optional("storageClassName", _check_class_name),
        checks.pointer("volumeMode", checks.one_of(*VOLUME_MODES)),
        checks.pointer("dataSource", _DATA_SOURCE, group),
        checks.pointer("dataSourceRef", _DATA_SOURCE, group, _NAMESPACE),
        _check_same_source,
        checks.optional("volumeAttributesClassName", _check_class_name),
    )


check_claim_spec: Final = _spec(check_selector, _GROUP)


def check_changed_claim_spec(spec: ReadOnlyTree, old: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    """Check the spec of an update, which may keep an invalid selector, and any API group if the old spec had one."""
    had_group = any(
        (old.get(name) or {}).get("apiGroup") is not None for name in ("dataSource", "dataSourceRef")
    )
    old_is_invalid = any(check_selector(old.get("selector") or {}, path))
    return _spec(
        check_selector_leniently if old_is_invalid else check_selector,
        checks.all_of() if had_group else _GROUP,
    )(spec, path)


# --- templates

_REFUSED_IN_TEMPLATES: Final = {
    "name": "name", "generateName": "generateName", "namespace": "namespace", "selfLink": "selfLink", "uid": "uID",
    "resourceVersion": "resourceVersion", "generation": "generation", "creationTimestamp": "creationTimestamp",
    "deletionTimestamp": "deletionTimestamp", "deletionGracePeriodSeconds": "deletionGracePeriodSeconds",
    "ownerReferences": "ownerReferences", "finalizers": "finalizers", "managedFields": "managedFields",
}  # fmt: skip
"""The fields of metadata that a template must not set, with their names in upstream's errors."""


def check_template_metadata(metadata: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check the metadata of a template, of which only labels and annotations are used."""
    yield from check_annotations(metadata.get("annotations"), path.child("annotations"))
    yield from check_labels(metadata.get("labels"), path.child("labels"))
    for name, path_name in _REFUSED_IN_TEMPLATES.items():
        value = metadata.get(name)
        if value or value == [] or (name == "deletionGracePeriodSeconds" and value is not None):
            yield from checks.refuse_any("cannot be set")(None, path.child(path_name))


check_claim_template: Final = checks.all_of(
    checks.field("metadata", check_template_metadata, absent={}),
    checks.field("spec", check_claim_spec, absent={}),
)


# --- columns

_ACCESS_MODES: Final[Mapping[str, str]] = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def access_modes_text(modes: Sequence[str]) -> str:
    return ",".join(short for mode, short in _ACCESS_MODES.items() if mode in modes)


def phase_text(tree: Tree) -> str:
    return "Terminating" if meta.is_deleting(tree) else text(tree, "status", "phase")


def storage_class_text(tree: Tree) -> str:
    return text(
        meta.annotations(tree), ANNOTATION_BETA_STORAGE_CLASS, default=text(tree, "spec", "storageClassName")
    )
