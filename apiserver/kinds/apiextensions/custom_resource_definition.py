"""CustomResourceDefinition."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.timestamps import parse_time
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds.api_resource import STATUS_WITHOUT_TABLE, Resource
from mockube.apiserver.kinds.common.defaults import FILLED_BY_OWNER, defaults_table
from mockube.apiserver.kinds.common.warnings import Warnings
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import MAIN, SPEC, Strategy, StrategyContext
from mockube.apiserver.kinds.strategy import STATUS as STATUS_PATH
from mockube.apiserver.wire.table import NAME, Column, Printer

from .schemas import all_schemas, unknown_formats
from .validation import validation
from .versions import to_internal

# --- strategy

CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
"""The finalizer that a definition has until its objects are deleted."""

_TERMINATING: Final = {
    "type": "Terminating",
    "status": "True",
    "reason": "InstanceDeletionPending",
    "message": "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",
}


def _storage_versions(definition: Tree) -> list[str]:
    """Return the name of the first storage version: validation refuses more than one."""
    versions = definition.get("spec", {}).get("versions") or ()
    return [version.get("name", "") for version in versions if version.get("storage")][:1]


def _prepare_create(definition: Tree, _request: StrategyContext) -> None:
    stored = _storage_versions(definition) or None
    definition["status"] = definition["status"] | {"storedVersions": stored}


def _prepare_update(new: Tree, _old: Tree, _request: StrategyContext) -> None:
    """Add the storage version to the versions in which objects may be stored."""
    status = new.get("status", {})
    stored_versions = status.get("storedVersions") or []
    present = {*stored_versions}
    stored = [name for name in _storage_versions(new) if name not in present]
    new["status"] = status | {"storedVersions": [*stored_versions, *stored] or None}


def _is_pending(definition: Tree) -> bool:
    """Return whether a definition stays after a delete request: its objects are deleted first."""
    return not meta.is_deleting(definition) or bool(meta.finalizers(definition))


def _prepare_delete(definition: Tree) -> None:
    metadata = definition["metadata"]
    finalizers = metadata.get("finalizers", [])
    metadata["finalizers"] = finalizers if CLEANUP in finalizers else [*finalizers, CLEANUP]
    now = parse_time(metadata["deletionTimestamp"])
    new_conditions = conditions.set_condition(conditions.of(definition), _TERMINATING, now)
    definition["status"] = (definition.get("status") or {}) | {"conditions": new_conditions}


_STRATEGY: Final = Strategy(
    resets={MAIN: STATUS_PATH, "status": SPEC},
    generation=SPEC,
    first_generation=1,
    unconditional_update=False,
    prepare_create=_prepare_create,
    prepare_update={MAIN: _prepare_update},
    pending=_is_pending,
    prepare_delete=_prepare_delete,
    has_plain_deletion=True,
    marks_without_policy=True,
    checks_preconditions=True,
)


# --- defaults


def _default_stored_versions(definition: Tree) -> None:
    """Set the storage version as the only stored version if there are none."""
    if definition["status"]["storedVersions"]:
        return
    stored = [version["name"] for version in definition["spec"]["versions"] or () if version["storage"]]
    if stored:
        definition["status"]["storedVersions"] = stored[:1]


def _default_names(spec: Tree) -> None:
    names = spec["names"]
    if names["kind"]:
        names.setdefault("singular", names["kind"].lower())
        names.setdefault("listKind", f"{names['kind']}List")


_DEFAULTS: Final = defaults_table(
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
    {
        "CustomResourceDefinition": _default_stored_versions,
        "CustomResourceDefinitionSpec": (_default_names, {"conversion": {"strategy": "None"}}),
        "CustomResourceDefinitionNames": FILLED_BY_OWNER,
        "ServiceReference": {"port": 443},
    },
)


# --- columns


def _cells(definition: Tree, _now: datetime) -> list[Any]:
    spec = to_internal(definition.get("spec") or {})
    names = spec.get("names") or {}
    served = (version for version in spec.get("versions") or () if version.get("served"))
    versions = sorted(
        f"{each.get('name', '')}{'(storage)' if each.get('storage') else ''}" for each in served
    )
    return [
        meta.name(definition),
        spec.get("scope") or "",
        ",".join(versions),
        meta.metadata(definition).get("creationTimestamp") or "",
        spec.get("group") or "",
        names.get("kind") or "",
        ",".join(names.get("shortNames") or ()),
        conditions.is_true(definition, "Established"),
    ]


_PRINTER: Final = Printer(
    columns=(
        NAME,
        Column(name="Scope"),
        Column(name="Versions"),
        Column(name="Created At", type="date"),
        Column(name="Group", priority=1),
        Column(name="Kind", priority=1),
        Column(name="ShortNames", priority=1),
        Column(name="Established", type="boolean", priority=1),
    ),
    cells=_cells,
)


# --- warnings


def _format_warnings(new: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[str]:
    """Warn of formats that a definition adds and that the server ignores."""
    old_formats = {*_unknown_formats(old)}
    return (f"unrecognized format {quote(form)}" for form in _unknown_formats(new) if form not in old_formats)


_NO_SETS: Final = 'x-kubernetes-list-type: set for items of type "{}" is not supported by server-side apply or CEL validation rules'


def _set_warnings(new: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[str]:
    """Warn of sets of objects or lists that a definition adds."""
    old_types = _types_in_sets(old)
    return (_NO_SETS.format(each) for each in sorted(_types_in_sets(new) - old_types))


def _types_in_sets(definition: Mapping[str, Any]) -> set[str]:
    spec = to_internal(definition.get("spec") or {})
    types = set()
    for version in (spec, *(spec["versions"] or ())):
        schema = (version.get("validation") or version.get("schema") or {}).get("openAPIV3Schema")
        for inner in all_schemas(schema) if schema else ():
            items = inner.get("items")
            if inner.get("x-kubernetes-list-type") == "set" and isinstance(items, Mapping):
                types.add(items.get("type", ""))
    return types & {"object", "array"}


def _unknown_formats(definition: Mapping[str, Any]) -> Iterator[str]:
    spec = to_internal(definition.get("spec") or {})
    for version in (spec, *(spec["versions"] or ())):
        schema = (version.get("validation") or version.get("schema") or {}).get("openAPIV3Schema")
        yield from unknown_formats(schema) if schema else ()


KIND: Final = Kind(
    resource=Resource(
        group="apiextensions.k8s.io",
        version="v1",
        name="customresourcedefinitions",
        stored_at="apiextensions.k8s.io/customresourcedefinitions",
        hashed_version="v1beta1",
        work=64,  # to compile patterns, and to check defaults against them
        kind="CustomResourceDefinition",
        namespaced=False,
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        subresources=(STATUS_WITHOUT_TABLE,),
    ),
    strategy=_STRATEGY,
    defaults=_DEFAULTS,
    validation=validation(),
    printer=_PRINTER,
    warnings=Warnings(
        create=lambda new: [*_format_warnings(new, {}), *_set_warnings(new, {})],
        update=lambda new, old: [*_format_warnings(new, old), *_set_warnings(new, old)],
    ),
)
