"""Defaults of apps: Deployments, ReplicaSets, StatefulSets, DaemonSets."""

from typing import Any, Final

from apiserver.defaults.table import Fill, Tree, of

_ROLLING_UPDATE: Final = "RollingUpdate"


def _rolling_update(**literals: Any) -> Fill:
    """The parameters of a rolling update, of which these are all that there are: in Go's order."""

    def fill(strategy: Tree) -> None:
        if strategy["type"] == _ROLLING_UPDATE:
            strategy["rollingUpdate"] = literals | strategy.get("rollingUpdate", {})

    return fill


def _stateful_set_update_strategy(strategy: Tree) -> None:
    """A StatefulSet whose strategy is named may do without a partition."""
    if "type" not in strategy:
        strategy["type"] = _ROLLING_UPDATE
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == _ROLLING_UPDATE and "rollingUpdate" in strategy:
        strategy["rollingUpdate"] = {"partition": 0} | strategy["rollingUpdate"]


DEFAULTS: Final = of(
    "io.k8s.api.apps.v1",
    {
        "DeploymentSpec": {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600},
        "DeploymentStrategy": (
            {"type": _ROLLING_UPDATE},
            _rolling_update(maxUnavailable="25%", maxSurge="25%"),
        ),
        "ReplicaSetSpec": {"replicas": 1},
        "StatefulSetSpec": {
            "replicas": 1,
            "podManagementPolicy": "OrderedReady",
            "revisionHistoryLimit": 10,
            "persistentVolumeClaimRetentionPolicy": {},
        },
        "StatefulSetUpdateStrategy": _stateful_set_update_strategy,
        "StatefulSetPersistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        "DaemonSetSpec": {"revisionHistoryLimit": 10},
        "DaemonSetUpdateStrategy": ({"type": _ROLLING_UPDATE}, _rolling_update(maxUnavailable=1, maxSurge=0)),
    },
)
