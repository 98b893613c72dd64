"""Reject nodes that do not declare the features that a pod needs. Upstream: plugins/nodedeclaredfeatures."""

from typing import Final

from mockube.scheduler.cluster import ClusterSnapshot
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo

from .filter import Check, Rejection

_MISSING: Final = Rejection(("node(s) didn't match Pod's required features",), is_unresolvable=True)


def declared_features(pod: PodInfo, snapshot: ClusterSnapshot) -> Check | None:
    if not snapshot.gates.is_on("NodeDeclaredFeatures"):
        return None
    required = _required_features(pod)
    if not required:
        return None

    def check(node: NodeInfo) -> Rejection | None:
        declared = (node.node.get("status") or {}).get("declaredFeatures") or ()
        return None if required <= {*declared} else _MISSING

    return check


def _required_features(pod: PodInfo) -> set[str]:
    """Return the features without which a kubelet cannot run the pod."""
    features = set()
    containers = (*(pod.spec.get("containers") or ()), *(pod.spec.get("initContainers") or ()))
    rules = [rule for container in containers for rule in container.get("restartPolicyRules") or ()]
    if any(rule.get("action") == "RestartAllContainers" for rule in rules):
        features.add("RestartAllContainersOnContainerExits")
    if pod.spec.get("hostNetwork") and pod.spec.get("hostUsers") is False:
        features.add("UserNamespacesHostNetwork")
    return features
