"""The version v1alpha1 of StatefulSets: its definition, derived from that of v1beta1, and the conversion.

Objects are stored in v1beta1. v1alpha1 has fewer fields, and an object that is written in it loses the others, as
OpenKruise's webhook converts it.
"""

from typing import Final

import orjson

from mockube.apimachinery.tree import ReadOnlyTree, Tree

from .beta import CONVERSION

_PLURAL: Final = "statefulsets"
_BETA_SPEC: Final = frozenset(
    {
        *("lifecycle", "ordinals", "persistentVolumeClaimRetentionPolicy", "reserveOrdinals"),
        *("scaleStrategy", "volumeClaimUpdateStrategy"),
    }
)
_BETA_STATUS: Final = frozenset({"updatedAvailableReplicas", "updatedReadyReplicas", "volumeClaims"})
_COUNTS: Final = ("replicas", "readyReplicas", "availableReplicas", "currentReplicas", "updatedReplicas")
"""What Go encodes of a status without values."""


def with_alpha(definition: Tree) -> Tree:
    """Return the definition with v1alpha1 as well, if it is that of StatefulSets."""
    if definition["spec"]["names"]["plural"] != _PLURAL:
        return definition
    tree: Tree = orjson.loads(orjson.dumps(definition))
    (beta,) = tree["spec"]["versions"]
    alpha: Tree = orjson.loads(orjson.dumps(beta)) | {"name": "v1alpha1", "storage": False}
    properties = alpha["schema"]["openAPIV3Schema"]["properties"]
    for part, fields in (("spec", _BETA_SPEC), ("status", _BETA_STATUS)):
        properties[part]["properties"] = _without(properties[part]["properties"], fields)
    tree["spec"] |= {"versions": [alpha, beta], "conversion": orjson.loads(orjson.dumps(CONVERSION))}
    return tree


def convert_stateful_set(tree: Tree, api_version: str) -> Tree:
    status = dict.fromkeys(_COUNTS, 0) | _without(tree.get("status") or {}, _BETA_STATUS)
    converted: Tree = {**tree, "apiVersion": api_version, "status": status}
    if "spec" in tree:
        spec = _without(tree["spec"], _BETA_SPEC)
        converted["spec"] = spec | {"updateStrategy": spec.get("updateStrategy") or {}}
    return converted


def _without(tree: ReadOnlyTree, fields: frozenset[str]) -> Tree:
    return {name: value for name, value in tree.items() if name not in fields}
