"""CloneSets between v1alpha1 and v1beta1, as OpenKruise converts them. The results are new trees that share parts with the old ones.

In v1beta1 the fields of updates are below `rollingUpdate`, claims are reused only if a field requests it, and a former label is a
field, which is not converted back.
"""

from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree

ALPHA, BETA = "apps.kruise.io/v1alpha1", "apps.kruise.io/v1beta1"
LABEL_EXCLUDE_PREPARING_DELETE: Final = "apps.kruise.io/cloneset-scaling-exclude-preparing-delete"

_RECREATE, _ROLLING_UPDATE, _ON_DELETE = "ReCreate", "RollingUpdate", "OnDelete"


def to_v1beta1(tree: ReadOnlyTree) -> dict[str, Any]:
    clone_set = {**tree, "apiVersion": BETA}
    if "spec" in tree:
        excludes = meta.labels(tree).get(LABEL_EXCLUDE_PREPARING_DELETE) == "true"
        clone_set["spec"] = spec_to_v1beta1(tree["spec"], excludes=excludes)
    return clone_set


def to_v1alpha1(tree: ReadOnlyTree) -> dict[str, Any]:
    clone_set = {**tree, "apiVersion": ALPHA}
    if "spec" in tree:
        clone_set["spec"] = spec_to_v1alpha1(tree["spec"])
    return clone_set


def spec_to_v1beta1(spec: ReadOnlyTree, *, excludes: bool = False) -> dict[str, Any]:
    """`excludes`: pods that are about to be deleted do not count when pods are created or deleted."""
    scale, update = dict(spec.get("scaleStrategy") or {}), dict(spec.get("updateStrategy") or {})
    scale["enablePVCReuse"] = not scale.pop("disablePVCReuse", False)
    if excludes:
        scale["excludePreparingDelete"] = True
    policy = update.pop("type", "") or _RECREATE
    strategy: dict[str, Any] = (
        {"type": _ON_DELETE}
        if policy == _ON_DELETE
        else {"type": _ROLLING_UPDATE, "rollingUpdate": {"podUpdatePolicy": policy, **update}}
    )
    return {**spec, "scaleStrategy": scale, "updateStrategy": strategy}


def spec_to_v1alpha1(spec: ReadOnlyTree) -> dict[str, Any]:
    scale, strategy = dict(spec.get("scaleStrategy") or {}), spec.get("updateStrategy") or {}
    scale.pop("excludePreparingDelete", None)
    if not scale.pop("enablePVCReuse", False):
        scale["disablePVCReuse"] = True
    update = dict(strategy.get("rollingUpdate") or {})
    policy = update.pop("podUpdatePolicy", "") or _RECREATE
    kind = _ON_DELETE if strategy.get("type") == _ON_DELETE else policy
    return {**spec, "scaleStrategy": scale, "updateStrategy": {"type": kind, **update}}
