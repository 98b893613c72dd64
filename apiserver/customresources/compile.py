"""Compile a CustomResourceDefinition into a `CustomVersion` for each version.

The definition is valid. Versions are ordered by name: `v2`, `v1`, `v2beta1`, `v1beta2`, `v1alpha1`, then all others
alphabetically.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from mockube.apimachinery.schema.model import SchemaType
from mockube.apiserver.fields import selectable
from mockube.apiserver.kinds.api_resource import SCALE, STATUS, Replicas, Resource, SelectorForm, Subresource
from mockube.apiserver.kinds.apiextensions.versions import needs_webhook
from mockube.apiserver.kinds.jsonschema.schema import ANY_VALUE, properties
from mockube.apiserver.wire.table import Printer

from .columns import printer
from .cost import cost_of
from .custom_version import CustomVersion, pack_schema
from .scales import ScalePaths
from .strategy import custom_strategy

_VERSION: Final = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_MATURITY: Final = {None: 0, "beta": 1, "alpha": 2}


def by_maturity(versions: Iterable[str]) -> Sequence[str]:
    return sorted(versions, key=_rank)


def _rank(version: str) -> tuple[int, int, int, str]:
    match = _VERSION.fullmatch(version)
    if match is None:
        return len(_MATURITY), 0, 0, version
    major, maturity, minor = match.groups()
    return _MATURITY[maturity], -int(major), -int(minor or 0), version


VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""The verbs in the order of upstream's discovery of custom resources."""


def compile_definition(
    definition: Mapping[str, Any], metadata: Callable[[], SchemaType]
) -> Sequence[CustomVersion]:
    """Return one `CustomVersion` for each version. `metadata` returns the type of every object's metadata."""
    accepted_names = (definition.get("status") or {}).get("acceptedNames") or {}
    spec = definition["spec"]
    if accepted_names.get("plural"):  # otherwise the definition was not processed yet
        spec = spec | {"names": accepted_names}
    return [_compile(spec, version, metadata) for version in spec["versions"]]


def _compile(
    spec: Mapping[str, Any], version: Mapping[str, Any], metadata: Callable[[], SchemaType]
) -> CustomVersion:
    subresources = version.get("subresources") or {}
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or ANY_VALUE
    cost = cost_of(schema)
    return CustomVersion(
        row=replace(_row(spec, version, subresources), work=cost.byte),
        packed_schema=pack_schema(schema),
        preparation=cost.preparation,
        strategy=custom_strategy(
            has_status=subresources.get("status") is not None,
            has_default_status=any(map(_has_default_status, spec["versions"])),
        ),
        printer=_printer(spec, version),
        metadata=metadata,
        scale=ScalePaths.of(_replicas(subresources["scale"])) if subresources.get("scale") else None,
        served=version["served"],
        webhook=spec["conversion"].get("webhook") or {} if needs_webhook(spec) else None,
    )


def _has_default_status(version: Mapping[str, Any]) -> bool:
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or ANY_VALUE
    return (properties(schema).get("status") or {}).get("default") is not None


def _printer(spec: Mapping[str, Any], version: Mapping[str, Any]) -> Printer:
    owner = f"{spec['names']['plural']}.{spec['group']}/{version['name']}"
    return printer(version.get("additionalPrinterColumns") or (), owner)


def _row(spec: Mapping[str, Any], version: Mapping[str, Any], subresources: Mapping[str, Any]) -> Resource:
    names, group = spec["names"], spec["group"]
    stored = next((entry["name"] for entry in spec["versions"] if entry["storage"]), "")
    if not stored:  # another program stored it; StopIteration cannot be raised from a thread
        raise ValueError("no version of it is stored")
    return Resource(
        group=group,
        version=version["name"],
        name=names["plural"],
        kind=names["kind"],
        singular=names.get("singular", ""),
        listed_as=names.get("listKind", ""),
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        verbs=VERBS,
        subresources=_subresources(subresources),
        stored_at=f"{group}/{names['plural']}",
        storage_version=(group, stored),
        deprecated=_deprecation_warning(spec, version),
        selectable=tuple(
            selectable(field["jsonPath"].removeprefix(".")) for field in version.get("selectableFields") or ()
        ),
        relabelled=_other_versions(spec, version["name"]),
        replicas=replace(_replicas(subresources.get("scale") or {}), spec_paths=_spec_paths(spec)),
        custom=True,
    )


def _other_versions(spec: Mapping[str, Any], version: str) -> tuple[str, ...]:
    names = (entry["name"] for entry in spec["versions"])
    return tuple(f"{spec['group']}/{name}" for name in names if name != version)


def _subresources(subresources: Mapping[str, Any]) -> tuple[Subresource, ...]:
    rows = {"status": STATUS, "scale": SCALE}
    return tuple(row for name, row in rows.items() if subresources.get(name) is not None)


def _replicas(scale: Mapping[str, Any]) -> Replicas:
    if not scale:
        return Replicas()
    return Replicas(
        spec_path=_path(scale["specReplicasPath"]),
        status_path=_path(scale["statusReplicasPath"]),
        selector=_path(scale.get("labelSelectorPath") or ""),
        selector_form=SelectorForm.TEXT,
    )


def _spec_paths(spec: Mapping[str, Any]) -> Mapping[str, tuple[str, ...]]:
    scales = {
        version["name"]: (version.get("subresources") or {}).get("scale") for version in spec["versions"]
    }
    return {
        f"{spec['group']}/{name}": _path(scale["specReplicasPath"]) if scale else ()
        for name, scale in scales.items()
    }


def _deprecation_warning(spec: Mapping[str, Any], version: Mapping[str, Any]) -> str:
    """Return the warning for requests of a deprecated version; "" if the version is not deprecated."""
    if not version.get("deprecated"):
        return ""
    default_warning = f"{spec['group']}/{version['name']} {spec['names']['kind']} is deprecated"
    if version.get("deprecationWarning"):
        return str(version["deprecationWarning"])
    ranked = by_maturity({entry["name"] for entry in spec["versions"]})
    is_usable = {
        entry["name"]: entry.get("served") and not entry.get("deprecated") for entry in spec["versions"]
    }
    newer = next((name for name in ranked[: ranked.index(version["name"])] if is_usable[name]), "")
    return (
        f"{default_warning}; use {spec['group']}/{newer} {spec['names']['kind']}"
        if newer
        else default_warning
    )


def _path(json_path: str) -> tuple[str, ...]:
    return tuple(json_path.removeprefix(".").split(".")) if json_path else ()
