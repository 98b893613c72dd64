"""Warnings of CustomResourceDefinitions: what they ask for that is not done here."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from apimachinery.groups import GroupKind
from apiserver.crd.compile import needs_webhook
from apiserver.crd.schema import has_rules
from apiserver.warnings.kind import Warnings, always


def _warn(definition: Mapping[str, Any]) -> Iterator[str]:
    spec = definition.get("spec") or {}
    versions = spec.get("versions") or ()
    for index, version in enumerate(versions):
        schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
        if has_rules(schema):
            where = f"spec.versions[{index}].schema.openAPIV3Schema"
            yield f"{where}: x-kubernetes-validations are not evaluated by mockube: objects are taken that break them"
    if needs_webhook(spec) and len(versions) > 1:
        yield "spec.conversion.strategy: mockube calls no webhooks to convert: only the version that is stored is served"


WARNINGS: Final[Mapping[GroupKind, Warnings]] = {
    GroupKind("apiextensions.k8s.io", "CustomResourceDefinition"): always(_warn),
}
