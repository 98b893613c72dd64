"""A CustomResourceDefinition → a row of the catalog for each version, and what goes with it.

Knows no store and no server. The definition is one that its own rules found right.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from apimachinery.jsonpath import JSONPathError
from apimachinery.schema.model import Type
from apiserver.crd.columns import printer
from apiserver.crd.custom import Custom
from apiserver.crd.generations import custom_strategy
from apiserver.crd.schema import ANYTHING
from apiserver.resources.spec import SCALE, STATUS, Replicas, Resource, Subresource
from apiserver.wire.table import Printer

LOG = logging.getLogger(__name__)

VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""In the order in which upstream names those of custom resources."""


def compile_definition(definition: Mapping[str, Any], metadata: Callable[[], Type]) -> Sequence[Custom]:
    """One for each version. `metadata` finds the type of every object's metadata."""
    spec = definition["spec"]
    return [_compile(spec, version, metadata) for version in spec["versions"]]


def _compile(spec: Mapping[str, Any], version: Mapping[str, Any], metadata: Callable[[], Type]) -> Custom:
    subresources = version.get("subresources") or {}
    return Custom(
        row=_row(spec, version, subresources),
        schema=(version.get("schema") or {}).get("openAPIV3Schema") or ANYTHING,
        strategy=custom_strategy(has_status=subresources.get("status") is not None),
        printer=_printer(spec, version),
        metadata=metadata,
        served=version["served"] and (version["storage"] or not needs_webhook(spec)),
    )


def _printer(spec: Mapping[str, Any], version: Mapping[str, Any]) -> Printer:
    try:
        return printer(version.get("additionalPrinterColumns") or ())
    except JSONPathError as error:
        named = f"{spec['names']['plural']}.{spec['group']}/{version['name']}"
        LOG.warning("%s is shown without the columns of its definition: %s", named, error)
        return printer(())


def needs_webhook(spec: Mapping[str, Any]) -> bool:
    """Whether versions differ in more than their names. Nobody is called here: only what is stored can be served."""
    return (spec.get("conversion") or {}).get("strategy") == "Webhook"


def _row(spec: Mapping[str, Any], version: Mapping[str, Any], subresources: Mapping[str, Any]) -> Resource:
    names, group = spec["names"], spec["group"]
    stored = next(one["name"] for one in spec["versions"] if one["storage"])
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
        deprecated=_deprecated(spec, version),
        selectable=tuple(_path_text(field["jsonPath"]) for field in version.get("selectableFields") or ()),
        relabelled=_others(spec, version["name"]),
        replicas=_replicas(subresources.get("scale") or {}),
        custom=True,
    )


def _others(spec: Mapping[str, Any], version: str) -> tuple[str, ...]:
    if needs_webhook(spec):
        return ()
    names = (one["name"] for one in spec["versions"])
    return tuple(f"{spec['group']}/{name}" for name in names if name != version)


def _subresources(given: Mapping[str, Any]) -> tuple[Subresource, ...]:
    rows = {"status": STATUS, "scale": SCALE}
    return tuple(row for name, row in rows.items() if given.get(name) is not None)


def _replicas(scale: Mapping[str, Any]) -> Replicas:
    if not scale:
        return Replicas()
    return Replicas(
        wanted=_path(scale["specReplicasPath"]),
        present=_path(scale["statusReplicasPath"]),
        selector=_path(scale.get("labelSelectorPath") or ""),
        selector_is_text=True,
    )


def _deprecated(spec: Mapping[str, Any], version: Mapping[str, Any]) -> str:
    """What every client of a version is warned of that should not be used any more."""
    if not version.get("deprecated"):
        return ""
    usual = f"{spec['group']}/{version['name']} {spec['names']['kind']} is deprecated"
    return version.get("deprecationWarning") or usual


def _path_text(json_path: str) -> str:
    return json_path.removeprefix(".")


def _path(json_path: str) -> tuple[str, ...]:
    return tuple(filter(None, json_path.split(".")))
