"""Read CustomResourceDefinitions that kube-apiserver stored: it stores them as v1beta1, which no server serves."""

from collections.abc import Mapping
from typing import Any, Final

from mockube.apimachinery.tree import ReadOnlyTree, Tree

HEAD: Final = b'{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1",'
"""The first bytes of the canonical JSON of a v1beta1 object."""
_MOVED_FIELDS: Final[Mapping[str, str]] = {
    "subresources": "subresources",
    "validation": "schema",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}
"""Fields of the v1beta1 spec that v1 has in each version, with their v1 names."""


def to_v1(tree: ReadOnlyTree) -> Tree:
    """Return the definition in v1, with the defaults of v1beta1."""
    spec = dict(tree.get("spec") or {})
    version, versions = spec.pop("version", ""), [dict(entry) for entry in spec.get("versions") or ()]
    if not versions and version:
        versions = [{"name": version, "served": True, "storage": True}]
    common = {
        name: value for old, name in _MOVED_FIELDS.items() if (value := spec.pop(old, None)) is not None
    }
    spec["versions"] = [_with_paths(entry | common) for entry in versions]
    spec["conversion"] = _conversion(spec.get("conversion") or {})
    if spec.pop("preserveUnknownFields", None) is not False:
        spec["preserveUnknownFields"] = True
    spec["scope"] = spec.get("scope") or "Namespaced"
    spec["names"] = _names(spec.get("names") or {})
    return {**tree, "apiVersion": "apiextensions.k8s.io/v1", "spec": spec}


def _with_paths(version: Tree) -> Tree:
    columns = version.get("additionalPrinterColumns")
    if not columns:
        return version
    named = {"JSONPath": "jsonPath"}
    renamed = [{named.get(name, name): value for name, value in column.items()} for column in columns]
    return version | {"additionalPrinterColumns": renamed}


def _conversion(conversion: Mapping[str, Any]) -> Tree:
    strategy = conversion.get("strategy") or "None"
    if strategy != "Webhook":
        return {"strategy": strategy}
    webhook: Tree = {"conversionReviewVersions": conversion.get("conversionReviewVersions") or ["v1beta1"]}
    if conversion.get("webhookClientConfig") is not None:
        webhook["clientConfig"] = conversion["webhookClientConfig"]
    return {"strategy": strategy, "webhook": webhook}


def _names(names: Mapping[str, Any]) -> Tree:
    kind = names.get("kind") or ""
    defaults = {"singular": kind.lower(), "listKind": f"{kind}List" if kind else ""}
    return {**names, **{name: names.get(name) or default for name, default in defaults.items()}}
