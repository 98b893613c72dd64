"""The metadata that the server sets in objects of all kinds: system fields, namespace, owners and field managers."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import Final

import orjson

from mockube.apimachinery import gotext, randomness, status
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.status import ApiError
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.kind import Conversion
from mockube.apiserver.kinds.strategy import OWN_STATUS, SPEC, STATUS_ALONE
from mockube.apiserver.patch.apply import FieldManager, UnconvertibleVersion, VersionConverter
from mockube.apiserver.patch.apply.atoms import atom_of_type
from mockube.apiserver.patch.apply.fieldset import of_fields
from mockube.apiserver.patch.apply.managers import with_api_version
from mockube.apiserver.storage.stored_object import encoder

from .body import decode_as
from .convert import remote_conversion
from .registry import Registry
from .request_context import MAX_FIELD_MANAGER, RequestContext, WriteOptions

AFTER_ADMISSION: Final = " after mutating admission happens"
_SYSTEM_FIELDS: Final = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
_DUPLICATES: Final = (
    ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and may "
    "reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {uids}"
)
_UNKNOWN_VERSION: Final = "request to convert CR to an invalid group/version: {}"
"""The error for a custom object with fields of a version that its definition does not have any more."""


def ensure_metadata(tree: Tree) -> Tree:
    """Return an object's metadata, which is added if it is missing."""
    metadata: Tree = tree.setdefault("metadata", {})
    return metadata


def set_system_fields(tree: Tree, context: RequestContext, *, now: datetime, random: Random) -> None:
    """Set a new object's system fields. A create drops what the client sent in them."""
    metadata = ensure_metadata(tree)
    metadata.pop("selfLink", None)
    match_namespace(tree, context)
    metadata["uid"] = randomness.uid(random)
    metadata["creationTimestamp"] = format_time(now)


def clear_system_fields(tree: Tree) -> None:
    """Drop the system fields of an object."""
    metadata = ensure_metadata(tree)
    for field in _SYSTEM_FIELDS:
        metadata.pop(field, None)


def clear_deletion(tree: Tree) -> None:
    """Drop a client's deletion of an object that an update or apply creates. As upstream, its manager keeps the fields."""
    metadata = ensure_metadata(tree)
    for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        metadata.pop(field, None)


def without_duplicate_owners(tree: Tree, context: RequestContext, *, when: str = "") -> Tree:
    """Return the object with each owner reference once; add a warning for duplicates."""
    references = (tree.get("metadata") or {}).get("ownerReferences") or ()
    if len(references) < 2 or len({reference.get("uid") for reference in references}) == len(references):
        return tree
    seen: set[bytes] = set()
    unique_references, duplicates = [], []
    for reference in references:
        text = orjson.dumps(reference, option=orjson.OPT_SORT_KEYS)
        if text in seen:
            duplicates.append(reference.get("uid", ""))
        else:
            seen.add(text)
            unique_references.append(reference)
    if not duplicates:
        return tree
    context.report.warn(_DUPLICATES.format(when=when, uids=", ".join(duplicates)))
    return {**tree, "metadata": {**tree["metadata"], "ownerReferences": unique_references}}


def check_no_uid(tree: Tree, context: RequestContext) -> None:
    """Refuse an object with a UID, which an update or apply would create."""
    if uid := ensure_metadata(tree).get("uid"):
        problem = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise status.conflict(context.resource.group_resource, context.name, problem)


def check_new(tree: Tree, context: RequestContext, *, dry_run: bool) -> None:
    """Check the metadata of an object that an update or apply creates: it must not have a UID, nor an invalid version.

    The resourceVersion is dropped, except in a dry run.
    """
    check_no_uid(tree, context)
    metadata = ensure_metadata(tree)
    parse_resource_version(metadata.get("resourceVersion", ""))
    if not dry_run:
        metadata.pop("resourceVersion", None)


def parse_resource_version(text: str) -> int:
    """Return the resourceVersion that a client sent, as a number; 0 if it sent none."""
    try:
        return gotext.parse_uint(text) if text else 0
    except gotext.NumberError as error:
        raise ApiError(str(error)) from error


def match_namespace(tree: Tree, context: RequestContext) -> None:
    """Set the namespace of the URL; refuse another one. Cluster-scoped objects have none."""
    metadata = ensure_metadata(tree)
    object_namespace = metadata.pop("namespace", "")
    if not context.resource.namespaced:
        return
    if object_namespace not in ("", context.namespace):
        raise status.BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    metadata["namespace"] = context.namespace


def match_name(tree: Tree, name: str) -> None:
    """Refuse an object whose name is not that of the URL."""
    object_name = ensure_metadata(tree).get("name")
    if not object_name:
        problem = f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        raise status.BadRequest(problem)
    if object_name != name:
        raise status.BadRequest(
            f"the name of the object ({object_name}) does not match the name on the URL ({name})"
        )


def keep_immutable(new: Tree, old: Tree, *, dry_run: bool) -> None:
    """Set the fields of metadata that an update cannot change to their old values.

    Upstream drops a selfLink when it stores the object, which a dry run does not.
    """
    new_metadata, old_metadata = ensure_metadata(new), ensure_metadata(old)
    new_metadata["uid"] = new_metadata.get("uid") or old_metadata.get("uid")
    for field in ("creationTimestamp", "generation"):
        if field in old_metadata:
            new_metadata[field] = old_metadata[field]
        else:
            new_metadata.pop(field, None)
    if "deletionTimestamp" in old_metadata:
        new_metadata["deletionTimestamp"] = old_metadata["deletionTimestamp"]
    if "deletionGracePeriodSeconds" in old_metadata:
        new_metadata.setdefault("deletionGracePeriodSeconds", old_metadata["deletionGracePeriodSeconds"])
    if not dry_run:
        new_metadata.pop("selfLink", None)


# --- field managers


def manage_new(registry: Registry, context: RequestContext, tree: Tree, options: WriteOptions) -> Tree:
    """Return a new object with its first manager, the creator."""
    manager = field_manager(
        registry, context.resource, context.subresource.name if context.subresource else ""
    )
    time = tree["metadata"]["creationTimestamp"]
    return without_empty_managers(manager.create(tree, manager=manager_name(context, options), time=time))


def manage_response(registry: Registry, context: RequestContext, tree: Tree, options: WriteOptions) -> Tree:
    """Return an object that is returned to the client but never stored, such as a review, with its manager."""
    name = context.subresource.name if context.subresource else ""
    key = context.resource, name
    manager = registry.scheme.field_managers.get(key)
    if manager is None:
        manager = registry.scheme.field_managers[key] = manager_of_kind(
            registry, tree["apiVersion"], tree["kind"], name
        )
    time = format_time(registry.clock.now())
    return without_empty_managers(manager.create(tree, manager=manager_name(context, options), time=time))


def manage_change(
    registry: Registry, context: RequestContext, new: Tree, old: Tree, options: WriteOptions
) -> Tree:
    """Return a changed object with its managers."""
    subresource = context.subresource.name if context.subresource else ""
    manager = field_manager(registry, context.resource, subresource)
    name, time = manager_name(context, options), format_time(registry.clock.now())
    return without_empty_managers(manager.update(old, new, manager=name, time=time))


def without_empty_managers(tree: Tree) -> Tree:
    """Return an object without managers with no managedFields rather than an empty list."""
    if not tree["metadata"].get("managedFields"):
        tree["metadata"].pop("managedFields", None)
    return tree


def manager_name(context: RequestContext, options: WriteOptions) -> str:
    """Return the field manager: as the client set it, or else from its user agent."""
    if options.field_manager:
        return options.field_manager
    program = context.user_agent.partition("/")[0]
    if not program.isprintable():
        program = "".join(filter(str.isprintable, program))
    return program[:MAX_FIELD_MANAGER] or "unknown"


def without_managers(registry: Registry, context: RequestContext, value: bytes) -> bytes | None:
    """Return a value that is too large to be stored without its managers; None if they must stay, or there are none."""
    row = registry.stored_row(context.resource)
    if context.body.applies or registry.scheme.strategy(row).raw:
        return None
    tree = orjson.loads(value)
    return encoder(row)(tree) if tree["metadata"].pop("managedFields", None) else None


def field_manager(registry: Registry, resource: Resource, subresource: str) -> FieldManager:
    """Return the manager of the fields of a resource or subresource, which is created at its first use."""
    key = resource, subresource
    manager = registry.scheme.field_managers.get(key)
    if manager is None:
        manager = registry.scheme.field_managers[key] = _new_manager(registry, resource, subresource)
    return manager


def _new_manager(registry: Registry, resource: Resource, subresource: str) -> FieldManager:
    version, kind = resource.api_version, resource.kind
    paths = registry.scheme.strategy(resource).resets.get(subresource, ())
    if paths in (STATUS_ALONE["status"], OWN_STATUS["status"]):
        paths = (*SPEC, ("metadata",))  # status writes own none of it, although they can change some of it
    resets = of_fields(*map(".".join, paths))
    all_versions = (version, *resource.relabelled, *_other_versions(registry, resource))
    versions = VersionConverter(
        own=version,
        atoms={
            api_version: atom_of_type(registry.scheme.schemas.kind(api_version, kind))
            for api_version in all_versions
        },
        # The strategy of a custom resource names its own version only; of its status, all versions are collected.
        reset_fields=dict.fromkeys(all_versions if subresource or not resource.custom else [version], resets),
        convert=_converter(registry, resource),
        unknown_version=_UNKNOWN_VERSION if resource.custom else "",
    )
    type_meta: Tree = {"kind": kind, "apiVersion": version}
    empty = type_meta | decode_as(registry, type_meta).tree
    return FieldManager(
        keeps_managers=not registry.is_before("1.37"),
        kind=kind,
        versions=versions,
        empty=empty,
        subresource=subresource,
        is_custom=resource.custom,
        may_be_mistyped=resource.custom
        and (bool(resource.relabelled) or registry.scheme.conversion(resource) is not None),
        untyped=_dropped_members(registry, resource, subresource),
    )


def _dropped_members(registry: Registry, resource: Resource, subresource: str) -> tuple[str, ...]:
    """Return the members of a custom object that requests to a path do not write. They are dropped without validation."""
    if not resource.custom or resource.subresource("status") is None:
        return ()
    if not subresource:
        return ("status",)
    of = registry.scheme.schemas.kind(resource.api_version, resource.kind)
    written = {"apiVersion", "kind", "metadata", "status"}
    return () if of is None else tuple(name for name in of.fields if name not in written)


def _converter(registry: Registry, resource: Resource) -> Callable[[ReadOnlyTree, str], ReadOnlyTree]:
    """Return a function that converts an object to another version. It raises `NotConverted` if a webhook must be called."""
    remote = remote_conversion(registry, resource)
    if remote is None:
        local = _local_conversions(registry, resource)
        return partial(_convert, local) if local else with_api_version

    def convert(tree: ReadOnlyTree, version: str) -> ReadOnlyTree:
        try:
            return remote.at_version(tree, version)
        except ApiError as error:
            raise UnconvertibleVersion(str(error)) from error

    return convert


def _local_conversions(registry: Registry, resource: Resource) -> Mapping[str, Conversion]:
    """Return how functions convert a built-in kind, by each of its versions that is not the stored one."""
    if resource.custom:
        return {}
    return {
        "/".join(filter(None, group_version)): conversion
        for (group_version, name), conversion in registry.scheme.conversions.items()
        if name == resource.name and conversion.remote is None and not conversion.at_storage
    }


def _other_versions(registry: Registry, resource: Resource) -> Iterable[str]:
    """Return the other versions of a built-in kind to which functions convert it, those of its group: others lose their managers."""
    local = _local_conversions(registry, resource)
    if not local:
        return ()
    storage_version = "/".join(filter(None, resource.storage_version or resource.group_version))
    others = {storage_version, *local} - {resource.api_version}
    return (version for version in others if version.rpartition("/")[0] == resource.group)


def _convert(conversions: Mapping[str, Conversion], tree: ReadOnlyTree, version: str) -> ReadOnlyTree:
    """Return an object in another version, by way of the stored one."""
    source: Tree = dict(tree)
    from_version = conversions.get(source["apiVersion"])
    stored_tree = source if from_version is None else from_version.to_stored(source)
    target = conversions.get(version)
    return stored_tree if target is None else target.from_stored(stored_tree)


def manager_of_kind(registry: Registry, api_version: str, kind: str, subresource: str) -> FieldManager:
    """Return the field manager for objects of a kind that are sent to a resource or subresource of another kind."""
    versions = VersionConverter(
        own=api_version,
        atoms={api_version: atom_of_type(registry.scheme.schemas.kind(api_version, kind))},
        reset_fields={},
    )
    type_meta: Tree = {"kind": kind, "apiVersion": api_version}
    empty = type_meta | decode_as(registry, type_meta).tree
    return FieldManager(kind=kind, versions=versions, empty=empty, subresource=subresource)
