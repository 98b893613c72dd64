"""UnitedDeployments between v1alpha1 and v1beta1, as OpenKruise converts them. Trees are new, and share parts.

In v1beta1 a subset's replicas and partition are in its own status only; in v1alpha1 also in two maps beside it.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from mockube.apimachinery import gotext
from mockube.apimachinery.intstr import IntOrString
from mockube.apimachinery.packs import clonesets
from mockube.apimachinery.packs.clonesets import ALPHA, BETA
from mockube.apimachinery.tree import ReadOnlyTree

Convert: TypeAlias = Callable[[ReadOnlyTree], dict[str, Any]]


def to_v1beta1(tree: ReadOnlyTree) -> dict[str, Any]:
    return _convert_versions(tree, BETA, clonesets.spec_to_v1beta1, _status_to_v1beta1)


def to_v1alpha1(tree: ReadOnlyTree) -> dict[str, Any]:
    return _convert_versions(tree, ALPHA, clonesets.spec_to_v1alpha1, _status_to_v1alpha1)


def _convert_versions(
    tree: ReadOnlyTree, api_version: str, of_clone_set: Convert, of_status: Convert
) -> dict[str, Any]:
    united_deployment = {**tree, "apiVersion": api_version}
    template = (tree.get("spec") or {}).get("template") or {}
    if "cloneSetTemplate" in template:
        clone_set = template["cloneSetTemplate"]
        clone_set_template = {**clone_set, "spec": of_clone_set(clone_set["spec"])}
        united_deployment["spec"] = {
            **tree["spec"],
            "template": {**template, "cloneSetTemplate": clone_set_template},
        }
    if "status" in tree:
        united_deployment["status"] = of_status(tree["status"])
    return united_deployment


def _status_to_v1beta1(status: ReadOnlyTree) -> dict[str, Any]:
    beta_status = dict(status)
    replicas, update = beta_status.pop("subsetReplicas", {}), beta_status.pop("updateStatus", {})
    subsets = {subset.get("name", ""): dict(subset) for subset in status.get("subsetStatuses") or ()}
    for name, count in sorted(replicas.items()):
        subsets.setdefault(name, {"name": name})["replicas"] = count
    for name, partition in sorted(update.get("currentPartitions", {}).items()):
        subsets.setdefault(name, {"name": name})["partition"] = partition
    if subsets:
        beta_status["subsetStatuses"] = list(subsets.values())
    if update.get("updatedRevision"):
        beta_status["updatedRevision"] = update["updatedRevision"]
    return beta_status


def _status_to_v1alpha1(status: ReadOnlyTree) -> dict[str, Any]:
    alpha_status = dict(status)
    revision, subsets = alpha_status.pop("updatedRevision", ""), status.get("subsetStatuses") or ()
    replicas, partitions = _by_name(subsets, "replicas"), _by_name(subsets, "partition")
    if replicas:
        alpha_status["subsetReplicas"] = replicas
    if revision or subsets:
        update_status = {"updatedRevision": revision, "currentPartitions": partitions}
        alpha_status["updateStatus"] = {name: value for name, value in update_status.items() if value}
    return alpha_status


def _by_name(subsets: Sequence[ReadOnlyTree], field: str) -> dict[str, int]:
    return {subset["name"]: subset.get(field, 0) for subset in subsets if subset.get("name")}


class SubsetReplicasError(ValueError):
    """It is neither; the message is upstream's."""


def parse_subset_replicas(total: int, value: IntOrString) -> int:
    """The number, a half being rounded up. A negative total is none."""
    if isinstance(value, int):
        if value < 0:
            raise SubsetReplicasError(f"subset replicas ({value}) should not be less than 0")
        return value
    if total < 0:
        problem = "should not be string when unitedDeployment replicas is empty"
        raise SubsetReplicasError(f"subsetReplicas ({value}) {problem}")
    percent = _percent(value)
    if not 0 <= percent <= 100:
        raise SubsetReplicasError(f"subset replicas ({value}) should be in range [0, 100]")
    return (total * percent + 50) // 100


def _percent(text: str) -> int:
    if not text.endswith("%"):
        problem = "only support integer value or percentage value with a suffix '%'"
        raise SubsetReplicasError(f"subset replicas ({text}) {problem}")
    try:
        return gotext.parse_int(text[:-1], function="Atoi")
    except gotext.NumberError as error:
        problem = f"should be correct percentage integer: {error}"
        raise SubsetReplicasError(f"subset replicas ({text}) {problem}") from None
