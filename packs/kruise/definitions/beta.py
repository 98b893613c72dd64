"""The version v1beta1 of CloneSets and UnitedDeployments: their definitions, derived from those of v1alpha1, and conversions.

Objects are stored in v1beta1. In it, all that tells how pods are updated is below `rollingUpdate`, and claims are reused
only on request. A `cloneSetTemplate` may have either form in a UnitedDeployment of v1alpha1, which is returned in its own.

OpenKruise converts objects by a webhook, which the definitions name. A server with the pack calls functions instead. Another
one refuses the version that is not stored until OpenKruise's webhook runs there: fields that nothing converts would be lost.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import orjson

from mockube.apimachinery import gotext, meta
from mockube.apimachinery.tree import ReadOnlyTree, Tree

GROUP: Final = "apps.kruise.io"
ALPHA, BETA = f"{GROUP}/v1alpha1", f"{GROUP}/v1beta1"
RECREATE, ROLLING_UPDATE, ON_DELETE = "ReCreate", "RollingUpdate", "OnDelete"

# --- definitions

CONVERSION: Final[ReadOnlyTree] = {
    "strategy": "Webhook",
    "webhook": {
        "clientConfig": {
            "service": {
                "namespace": "kruise-system",
                "name": "kruise-webhook-service",
                "path": "/convert",
                "port": 443,
            }
        },
        "conversionReviewVersions": ["v1", "v1beta1"],
    },
}


def with_beta(definition: ReadOnlyTree) -> Tree:
    """Return a definition that has and stores v1beta1 as well, if its resource has that version besides v1alpha1."""
    tree = _copy(definition)
    derive = _SCHEMAS.get(tree["spec"]["names"]["plural"])
    if derive is not None:
        (alpha,) = tree["spec"]["versions"]
        beta = _copy(alpha) | {"name": "v1beta1"}
        alpha["storage"] = False
        derive(*(version["schema"]["openAPIV3Schema"]["properties"] for version in (alpha, beta)))
        tree["spec"]["versions"].append(beta)
        tree["spec"]["conversion"] = _copy(CONVERSION)
    return tree


def _copy(tree: ReadOnlyTree) -> Tree:
    copied: Tree = orjson.loads(orjson.dumps(tree))
    return copied


def _derive_clone_set(_alpha: Tree, beta: Tree) -> None:
    _move_to_beta(beta["spec"]["properties"])


def _derive_united_deployment(alpha: Tree, beta: Tree) -> None:
    spec = _clone_set_fields(beta)
    _move_to_beta(spec)
    own = _clone_set_fields(alpha)
    for strategy in ("scaleStrategy", "updateStrategy"):
        own[strategy]["properties"] = _copy(spec[strategy]["properties"]) | own[strategy]["properties"]
    own["scaleStrategy"]["properties"]["enablePVCReuse"].pop("default")
    status = beta["status"]["properties"]
    del status["subsetReplicas"]
    status["updatedRevision"] = status.pop("updateStatus")["properties"]["updatedRevision"]


def _clone_set_fields(version: Tree) -> Tree:
    template = version["spec"]["properties"]["template"]["properties"]["cloneSetTemplate"]["properties"]
    fields: Tree = template["spec"]["properties"]
    return fields


def _move_to_beta(fields: Tree) -> None:
    scale, update = fields["scaleStrategy"]["properties"], fields["updateStrategy"]["properties"]
    reuse = scale.pop("disablePVCReuse")
    scale["enablePVCReuse"] = {
        "type": reuse["type"],
        "default": False,
        "description": "Whether new pods get the claims of lost pods.",
    }
    scale["excludePreparingDelete"] = {
        "type": "boolean",
        "description": "Whether pods that are about to be deleted do not count.",
    }
    policy = update.pop("type")
    rolling = {"type": "object", "description": "How pods are updated unless they are deleted by hand."}
    fields["updateStrategy"]["properties"] = {
        "type": {"type": "string", "description": f"{ROLLING_UPDATE} or {ON_DELETE}; the former by default."},
        "rollingUpdate": {**rolling, "properties": {"podUpdatePolicy": policy, **update}},
    }


_SCHEMAS: Final[Mapping[str, Callable[[Tree, Tree], None]]] = {
    "clonesets": _derive_clone_set,
    "uniteddeployments": _derive_united_deployment,
}


# --- conversions of CloneSets

_EXCLUDE: Final = "apps.kruise.io/cloneset-scaling-exclude-preparing-delete"
_PREFIX: Final = "apps.kruise.io/image-predownload-"
_PARALLELISM: Final = "imagePreDownloadParallelism"
_DOWNLOADS: Final = {
    _PARALLELISM: f"{_PREFIX}parallelism",
    "imagePreDownloadTimeoutSeconds": f"{_PREFIX}timeout-seconds",
    "imagePreDownloadMinUpdatedReadyPods": f"{_PREFIX}min-updated-ready-pods",
}
"""The annotations that fields of v1beta1 are in v1alpha1."""


_CLONE_SET_STATUS: Final = dict.fromkeys(
    ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "updatedReadyReplicas"), 0
)
"""What Go encodes of a status without values."""


def convert_clone_set(tree: Tree, api_version: str) -> Tree:
    status = _CLONE_SET_STATUS | (tree.get("status") or {})
    converted: Tree = {**tree, "apiVersion": api_version, "status": status}
    if "spec" not in tree:
        return converted
    if api_version == BETA:
        annotations = meta.annotations(tree)
        converted["spec"] = spec_to_beta(tree["spec"], meta.labels(tree), annotations)
        return converted
    converted |= {"metadata": metadata} if (metadata := _alpha_metadata(tree)) else {}
    converted["spec"] = spec_to_alpha(tree["spec"])
    return converted


def _alpha_metadata(tree: ReadOnlyTree) -> Tree:
    """Return metadata with the label and the annotations that fields of v1beta1 are in v1alpha1.

    OpenKruise does not set the label, because its controller reads v1beta1; the one here would lose the field.
    """
    metadata, spec = dict(tree.get("metadata") or {}), tree["spec"]
    rolling = (spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
    downloads = _annotations_of(rolling.get("inPlaceUpdateStrategy") or {})
    if downloads:
        metadata["annotations"] = (metadata.get("annotations") or {}) | downloads
    labels = dict(metadata.get("labels") or {})
    if (spec.get("scaleStrategy") or {}).get("excludePreparingDelete"):
        metadata["labels"] = labels | {_EXCLUDE: "true"}
    elif labels.get(_EXCLUDE) == "true":  # a client of v1beta1 has reset the field
        del labels[_EXCLUDE]
        metadata["labels"] = labels
    return metadata


def spec_to_beta(
    spec: ReadOnlyTree, labels: Mapping[str, str] | None = None, annotations: Mapping[str, str] | None = None
) -> Tree:
    scale, update = dict(spec.get("scaleStrategy") or {}), dict(spec.get("updateStrategy") or {})
    if not scale.pop("disablePVCReuse", False):
        scale["enablePVCReuse"] = True
    if (labels or {}).get(_EXCLUDE) == "true":
        scale["excludePreparingDelete"] = True
    policy = update.pop("type", "")
    if policy == ON_DELETE:
        return {**spec, "scaleStrategy": scale, "updateStrategy": {"type": ON_DELETE}}
    in_place = update.pop("inPlaceUpdateStrategy", None)
    fields = _fields_of(annotations or {})
    if in_place is not None or any((annotations or {}).get(name) for name in _DOWNLOADS.values()):
        update["inPlaceUpdateStrategy"] = _grace(in_place or {}) | fields
    policy = policy if policy in _POLICIES else RECREATE
    strategy = {"type": ROLLING_UPDATE, "rollingUpdate": {**update, "podUpdatePolicy": policy}}
    return {**spec, "scaleStrategy": scale, "updateStrategy": strategy}


def spec_to_alpha(spec: ReadOnlyTree) -> Tree:
    scale, strategy = dict(spec.get("scaleStrategy") or {}), spec.get("updateStrategy") or {}
    scale.pop("excludePreparingDelete", None)
    if not scale.pop("enablePVCReuse", False):
        scale["disablePVCReuse"] = True
    update = dict(strategy.get("rollingUpdate") or {})
    policy = update.pop("podUpdatePolicy", "")
    in_place = _grace(update.pop("inPlaceUpdateStrategy", None) or {})
    if in_place or _annotations_of((strategy.get("rollingUpdate") or {}).get("inPlaceUpdateStrategy") or {}):
        update["inPlaceUpdateStrategy"] = in_place
    kind = ON_DELETE if strategy.get("type") == ON_DELETE else policy if policy in _POLICIES else RECREATE
    return {**spec, "scaleStrategy": scale, "updateStrategy": {**update, "type": kind}}


_POLICIES: Final = (RECREATE, "InPlaceIfPossible", "InPlaceOnly")


def _grace(in_place: ReadOnlyTree) -> Tree:
    seconds = in_place.get("gracePeriodSeconds")
    return {"gracePeriodSeconds": seconds} if seconds else {}


def _fields_of(annotations: Mapping[str, str]) -> Tree:
    fields: Tree = {}
    for field, name in _DOWNLOADS.items():
        text = annotations.get(name) or ""
        number = gotext.int_or_none(text, bits=32)
        if text and (number is not None or field == _PARALLELISM):
            fields[field] = text if number is None else number
    return fields


def _annotations_of(in_place: ReadOnlyTree) -> dict[str, str]:
    return {
        name: str(in_place[field]) for field, name in _DOWNLOADS.items() if in_place.get(field) is not None
    }


# --- conversions of UnitedDeployments


def convert_united_deployment(tree: Tree, api_version: str) -> Tree:
    """In v1alpha1, the replicas and partitions of subsets are also in maps beside the statuses of the subsets."""
    converted: Tree = {**tree, "apiVersion": api_version}
    spec = tree.get("spec") or {}
    template = spec.get("template") or {}
    clone_set = template.get("cloneSetTemplate") or {}
    if "spec" in clone_set:
        template_spec = _template_spec(clone_set["spec"], api_version)
        changed = {**template, "cloneSetTemplate": {**clone_set, "spec": template_spec}}
        converted["spec"] = {**spec, "template": changed}
    status = {"replicas": 0, "updatedReplicas": 0, "currentRevision": ""} | (tree.get("status") or {})
    converted["status"] = _status_to_beta(status) if api_version == BETA else _status_to_alpha(status)
    return converted


def _template_spec(spec: Tree, api_version: str) -> Tree:
    """Convert the spec of a `cloneSetTemplate`. One without an update strategy has none in the other version either."""
    update, scale = spec.get("updateStrategy") or {}, spec.get("scaleStrategy") or {}
    is_beta = "rollingUpdate" in update or update.get("type") == ROLLING_UPDATE or "enablePVCReuse" in scale
    if api_version == BETA and is_beta:
        return spec
    converted = spec_to_alpha(spec) if api_version == ALPHA else spec_to_beta(spec)
    return converted if update else {**converted, "updateStrategy": update}


def _status_to_beta(status: ReadOnlyTree) -> Tree:
    converted = dict(status)
    replicas, update = converted.pop("subsetReplicas", None), converted.pop("updateStatus", None) or {}
    subsets = {subset.get("name", ""): dict(subset) for subset in status.get("subsetStatuses") or ()}
    for field, counts in (("replicas", replicas), ("partition", update.get("currentPartitions"))):
        for name, count in sorted((counts or {}).items()):
            _set_count(subsets.setdefault(name, {"name": name}), field, count)
    if subsets:
        converted["subsetStatuses"] = [*subsets.values()]
    if update.get("updatedRevision"):
        converted["updatedRevision"] = update["updatedRevision"]
    return converted


def _set_count(subset: Tree, field: str, count: int) -> None:
    """Set a count; Go omits 0."""
    subset.pop(field, None)
    if count:
        subset[field] = count


def _status_to_alpha(status: ReadOnlyTree) -> Tree:
    converted = dict(status)
    revision, subsets = converted.pop("updatedRevision", ""), status.get("subsetStatuses") or ()
    replicas, partitions = _by_name(subsets, "replicas"), _by_name(subsets, "partition")
    if replicas:
        converted["subsetReplicas"] = replicas
    if revision or subsets:
        update = {"updatedRevision": revision, "currentPartitions": partitions}
        converted["updateStatus"] = {name: value for name, value in update.items() if value}
    return converted


def _by_name(subsets: Sequence[ReadOnlyTree], field: str) -> dict[str, Any]:
    return {subset["name"]: subset.get(field, 0) for subset in subsets if subset.get("name")}
