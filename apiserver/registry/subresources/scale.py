"""/scale: the desired and current replicas of an object, in the same form for all kinds.

A Scale has one field that can be managed, `spec.replicas`; its path in the object is in the resource's row. The managers
of a Scale are those of the object's replicas.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

import orjson

from mockube.apimachinery import errors, labels, meta, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupKind, GroupResource
from mockube.apimachinery.labels import Selector
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import Resource, SelectorForm
from mockube.apiserver.kinds.common import objectmeta
from mockube.apiserver.patch.apply import FieldManager, managers
from mockube.apiserver.patch.apply.field_manager import describe_object
from mockube.apiserver.registry import metadata, read
from mockube.apiserver.registry import patch as patches
from mockube.apiserver.registry.apply import is_same, read_application
from mockube.apiserver.registry.body import read_object
from mockube.apiserver.registry.convert import to_client_version
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import (
    APPLY_TYPES,
    ObjectResult,
    RequestContext,
    WriteOptions,
    patch_options,
    write_options,
)
from mockube.apiserver.registry.update import guaranteed_update
from mockube.apiserver.registry.write import Write
from mockube.apiserver.schema.nested_values import AccessorError, nested_value
from mockube.apiserver.wire.negotiation import patch_media_type

SCALE = GroupKind("autoscaling", "Scale")
API_VERSION: Final = "autoscaling/v1"
_METADATA_FIELDS = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")

Entry: TypeAlias = Mapping[str, Any]
"""One entry of metadata.managedFields."""
Path: TypeAlias = tuple[str, ...]
PathIn: TypeAlias = Callable[[str], Path | None]
"""Returns the path of the replicas in an API version: () if it has none, None if there is no such version."""
_SELF_ELEMENT: Final = "."
"""The element that marks a field with children as managed itself."""
_SCALE_PATH: Final[Path] = ("spec", "replicas")


def scale_view(resource: Resource, *, checks_metadata: bool = False) -> patches.SubresourceView:
    """Return the view of a resource's objects as Scales; `checks_metadata`: as minors before 1.37 do."""

    def from_object(tree: Tree) -> Tree:
        return _scale(tree, resource)

    def update_object(old: Tree, scale: Tree) -> Tree:
        return _apply_scale(resource, old, scale, checks_metadata=checks_metadata)

    def patch_base(tree: Tree) -> Tree:
        return metadata.without_empty_managers(_scale_with_managers(tree, resource))

    return patches.SubresourceView(
        from_object=from_object, patch_base=patch_base, update_object=update_object, manage=_manage
    )


def _manage(registry: Registry, context: RequestContext, new: Tree, old: Tree, options: WriteOptions) -> Tree:
    """Return the object with its managers after a change of its Scale, whose writer manages the replicas."""
    entries, scale = _managed_fields(old), _scale(new, context.resource)
    name = metadata.manager_name(context, options)
    written = _field_manager(registry).update(
        _scale_with_managers(old, context.resource), scale, manager=name, time=None
    )
    return _with_managers(new, entries, written, context.resource)


def _managed_fields(tree: Tree) -> Sequence[Tree]:
    return meta.metadata(tree).get("managedFields") or ()


def _scale_with_managers(tree: Tree, resource: Resource) -> Tree:
    """Return the Scale of an object, with the managers of its replicas."""
    return meta.with_metadata(
        _scale(tree, resource, absent=_ABSENT_REPLICAS),
        managedFields=_scale_entries(_managed_fields(tree), _path_in(resource)),
    )


def _with_managers(new: Tree, entries: Sequence[Tree], scale: Tree, resource: Resource) -> Tree:
    managers = _object_entries(entries, _managed_fields(scale), resource.api_version, _path_in(resource))
    return metadata.without_empty_managers(meta.with_metadata(new, managedFields=managers))


def _path_in(resource: Resource) -> PathIn:
    """Return where the replicas are in each API version that objects of the resource have."""
    paths, path = resource.replicas.spec_paths, resource.replicas.spec_path
    return (lambda _version: path) if paths is None else paths.get


def _selector(tree: Tree, resource: Resource) -> str:
    replicas = resource.replicas
    if resource.custom:
        return _typed_value(tree, replicas.selector, str) or ""
    value = _value_at(tree, replicas.selector)
    if replicas.selector_form is SelectorForm.TEXT:
        return value or ""
    has_labels = replicas.selector_form is SelectorForm.LABELS
    select = labels.from_set if has_labels else labels.from_label_selector
    selector: Selector = select(value or {})
    return str(selector)


def _value_at(tree: Any, path: tuple[str, ...]) -> Any:
    """Return the value at a path; None if it is absent, or for an empty path."""
    return meta.value_at(tree, path) if path else None


def _number_at(tree: Tree, resource: Resource, path: Path) -> Any:
    return _typed_value(tree, path, int) if resource.custom else _value_at(tree, path)


def _typed_value(tree: Tree, path: Path, expected: type) -> Any:
    """Return a value of a custom object, whose earlier schema or webhook may have allowed another type."""
    try:
        return nested_value(tree, path, expected) if path else None
    except AccessorError as error:
        raise ApiError(str(error)) from error


def _spec_path(resource: Resource) -> str:
    return ".".join(("", *resource.replicas.spec_path))


_ABSENT_REPLICAS = -(2**31)
"""The replicas of the Scale of a custom object without replicas, at the start of a write."""


def _scale(tree: Tree, resource: Resource, *, absent: int = 0) -> Tree:
    replicas = _number_at(tree, resource, resource.replicas.spec_path)
    current_replicas = _number_at(tree, resource, resource.replicas.status_path) or 0
    if replicas is None and resource.custom:
        replicas = absent
    selector = _selector(tree, resource)
    return {
        "kind": SCALE.kind,
        "apiVersion": API_VERSION,
        "metadata": {
            field: tree["metadata"][field] for field in _METADATA_FIELDS if field in tree["metadata"]
        },
        "spec": {"replicas": replicas} if replicas else {},
        "status": {"replicas": current_replicas, "selector": selector}
        if selector
        else {"replicas": current_replicas},
    }


def _apply_scale(resource: Resource, old: Tree, scale: Tree, *, checks_metadata: bool) -> Tree:
    """Return the object with the replicas of a Scale, if it is a Scale of this object.

    The replicas of custom objects are checked by their schema. Their Scale without a resourceVersion has the current one.
    """
    name, replicas = meta.name(old), _replicas(scale)
    if not resource.custom and (wrong := _check(scale, replicas, checks_metadata=checks_metadata)):
        raise status.invalid(SCALE, name, wrong)
    if not resource.custom and meta.uid(scale) not in ("", meta.uid(old)):
        about = GroupResource(resource.group, f"{resource.name}/scale")
        problem = f"Precondition failed: UID in precondition: {meta.uid(scale)}, UID in object meta: {meta.uid(old)}"
        raise status.conflict(about, name, problem)
    if resource.custom and replicas == _ABSENT_REPLICAS:
        raise status.BadRequest(f'the spec replicas field "{_spec_path(resource)}" cannot be empty')
    version = meta.resource_version(scale)
    if resource.custom:
        version = version or meta.resource_version(old)
    seen = {"resourceVersion": version}
    return meta.with_value(old | {"metadata": old["metadata"] | seen}, resource.replicas.spec_path, replicas)


def _check(scale: Tree, replicas: int, *, checks_metadata: bool) -> list[FieldError]:
    """Return the errors of a Scale, except for its managers, which are ignored."""
    field_errors: list[FieldError] = []
    if checks_metadata:
        metadata = {name: value for name, value in scale["metadata"].items() if name != "managedFields"}
        from mockube.apiserver.kinds.minors.wording import of_metadata  # noqa: PLC0415 - only older minors need it

        wrong = objectmeta.check(scale | {"metadata": metadata}, objectmeta.SUBDOMAIN, namespaced=True)
        field_errors += map(of_metadata, wrong)
    if replicas < 0:
        field_errors.append(
            errors.invalid(ROOT.child("spec", "replicas"), replicas, "must be greater than or equal to 0")
        )
    return field_errors


def _replicas(scale: Mapping[str, Any]) -> int:
    replicas: int = (scale.get("spec") or {}).get("replicas", 0)
    return replicas


async def get(registry: Registry, context: RequestContext) -> ObjectResult:
    stored = await read.get(registry, context)
    answer = await to_client_version(registry, context.resource, stored, is_read=True)
    assert isinstance(answer, ObjectResult)
    resource = context.resource
    scale = scale_view(resource).view_result(answer)
    # Only a read refuses absent replicas: a write may lose them again when the object is converted for its storage.
    if resource.custom and _value_at(answer.object(), resource.replicas.spec_path) is None:
        raise status.internal_error(f'the spec replicas field "{_spec_path(resource)}" does not exist')
    return scale


def _written_view(registry: Registry, resource: Resource) -> patches.SubresourceView:
    return scale_view(resource, checks_metadata=registry.is_before("1.37"))


async def update(registry: Registry, context: RequestContext) -> ObjectResult:
    options, view = write_options(context, "UpdateOptions"), _written_view(registry, context.resource)
    scale = await registry.begin(context, _read_scale, registry, context, options)
    metadata.match_namespace(scale, context)
    metadata.match_name(scale, context.name)
    original = orjson.dumps(scale)

    def change(_: Write, old: Tree) -> Tree:
        new = view.update_object(old, orjson.loads(original))
        return _manage(registry, context, new, old, options)

    write = Write(registry=registry, context=context, options=options, change=change, uid=meta.uid(scale))
    return view.view_result(await guaranteed_update(write))


_NOT_REGISTERED = 'no kind is registered for the type v1.Scale in scheme "pkg/runtime/scheme.go:111"'
_UNMANAGED = (
    "failed to create manager for existing fields: failed to convert live object (/; autoscaling/v1, Kind=Scale) "
    "to proper version: request to convert CR to an invalid group/version: autoscaling/v1"
)
_NOT_CONVERTED = (
    "failed to convert new object ({}) "
    "to proper version: request to convert CR to an invalid group/version: autoscaling/v1"
)


def _read_scale(registry: Registry, context: RequestContext, options: WriteOptions) -> Tree:
    """Return the Scale of an update. Upstream does not report the errors of a Scale of a custom object."""
    try:
        return read_object(registry, context, options).tree
    except status.BadRequest as error:
        if not context.resource.custom:
            raise
        raise status.BadRequest(_NOT_REGISTERED) from error


async def patch(registry: Registry, context: RequestContext) -> ObjectResult:
    if patch_media_type(context.body.media_type) in APPLY_TYPES:
        return await _apply(registry, context)
    return await patches.patch(registry, context, _written_view(registry, context.resource))


async def _apply(registry: Registry, context: RequestContext) -> ObjectResult:
    view = _written_view(registry, context.resource)
    options, manager = patch_options(context), _field_manager(registry)
    reading = partial(read_application, registry, context.body, options, manager, time=None)
    application = await registry.begin(context, reading)

    def change(write: Write, old: Tree) -> Tree:
        live = _scale_with_managers(old, context.resource)
        if context.resource.custom and not _managed_fields(live):
            application.check_type()
            raise ApiError(_UNMANAGED)
        scale = application.merge_into(write, live)
        if context.resource.custom and not is_same(write.patched, live):
            # Upstream converts a changed Scale as a custom object, which fails; only the managers can be changed.
            raise ApiError(_NOT_CONVERTED.format(describe_object(application.config)))
        return _with_managers(view.update_object(old, scale), _managed_fields(old), scale, context.resource)

    write = Write(registry=registry, context=context, options=options, change=change)
    return view.view_result(await guaranteed_update(write))


def _field_manager(registry: Registry) -> FieldManager:
    """Return the field manager of Scales, which is the same for all resources."""
    return metadata.manager_of_kind(registry, API_VERSION, SCALE.kind, "scale")


# --- managers of the replicas


def _scale_entries(entries: Sequence[Entry], path_in: PathIn) -> list[Entry]:
    """Return the managers of an object's replicas, as managers of its Scale."""
    return [
        {**entry, "apiVersion": API_VERSION, "fieldsV1": _fields_of(_SCALE_PATH)}
        for entry in _unique_entries(entries)
        if _owns(entry, path_in(entry.get("apiVersion") or ""))
    ]


def _object_entries(
    entries: Sequence[Entry], of_scale: Sequence[Entry], api_version: str, path_in: PathIn
) -> list[Entry]:
    """Return an object's managers when only the managers of its Scale manage the replicas.

    As upstream: the updater of the object and the updater of its Scale are two managers, even if they are the same
    program on the same endpoint, because the API versions differ. The replicas then have an entry of their own,
    without a time. An applier of the Scale keeps the replicas as long as it applies any field of a Scale. Of entries
    that differ only in their fields the last one is used by the next change, and an entry of a version that does not
    exist any more is removed.
    """
    scale_entries_by_identity = {_identity(entry): entry for entry in of_scale}
    managers = []
    for entry in _unique_entries(entries):
        path = path_in(entry.get("apiVersion") or "")
        if path is None:
            continue
        if not _owns(entry, path) or scale_entries_by_identity.pop(_identity(entry), {}):
            managers.append(entry)
        elif (rest := _remove_field(entry["fieldsV1"], path)) is not None:
            managers.append({**entry, "fieldsV1": rest})
    managers += (
        {name: value for name, value in entry.items() if name != "time"}
        | {"apiVersion": api_version, "fieldsV1": _fields_of(path_in(api_version) or ())}
        for entry in scale_entries_by_identity.values()
        if _owns(entry, _SCALE_PATH)
    )
    return sorted(managers, key=_sort_key)


def _unique_entries(entries: Sequence[Entry]) -> Iterable[Entry]:
    return {_identity(entry): entry for entry in entries}.values()


def _sort_key(entry: Entry) -> tuple[str, ...]:
    keys = ("operation", "time", "manager", "apiVersion", "subresource")
    return tuple(entry.get(key) or "" for key in keys)


def _fields_of(path: Path) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = {}
    for step in reversed(path):
        fields = {f"f:{step}": fields}
    return fields


def _owns(entry: Entry, path: Path | None) -> bool:
    """Return whether the field at the path is managed itself, not only fields in it."""
    fields = entry.get("fieldsV1") if path else None
    for step in path or ():
        fields = (fields or {}).get(f"f:{step}")
    return fields is not None and (not fields or _SELF_ELEMENT in fields)


def _identity(entry: Entry) -> tuple[Any, ...]:
    """Return what distinguishes a manager. An applier is the same one in all API versions."""
    version = "" if entry.get("operation") == managers.APPLY else entry.get("apiVersion")
    return entry.get("manager"), entry.get("operation"), version, entry.get("subresource")


def _remove_field(fields: Mapping[str, Any], path: Path) -> Mapping[str, Any] | None:
    """Return the fields without the one at the path; None if none is left. A struct that is managed itself stays."""
    if not path:
        return {name: value for name, value in fields.items() if name != _SELF_ELEMENT} or None
    key = f"f:{path[0]}"
    inner = _remove_field(fields[key], path[1:])
    rest = {name: inner if name == key else value for name, value in fields.items()}
    if inner is None:
        del rest[key]
    return {} if rest.keys() == {_SELF_ELEMENT} else rest or None
