"""Reject nodes with taints that a pod does not tolerate, and cordoned nodes, which get a taint for that.

Upstream: plugins/tainttoleration, nodeunschedulable.
"""

from typing import Final

from mockube.client.component_helpers.tolerations import UNSCHEDULABLE, find_untolerated_taint, tolerates
from mockube.scheduler.cluster import ClusterSnapshot
from mockube.scheduler.nodeinfo import NodeInfo
from mockube.scheduler.podinfo import PodInfo

from .filter import Check, Rejection

_UNTOLERATED: Final = Rejection(("node(s) had untolerated taint(s)",), is_unresolvable=True)
_UNSCHEDULABLE_NODE: Final = Rejection(("node(s) were unschedulable",), is_unresolvable=True)


def node_unschedulable(pod: PodInfo, _: ClusterSnapshot) -> Check | None:
    if tolerates(pod.spec, UNSCHEDULABLE):
        return None
    return lambda node: _UNSCHEDULABLE_NODE if node.is_unschedulable else None


def taint_toleration(pod: PodInfo, snapshot: ClusterSnapshot) -> Check:
    names_taint = snapshot.gates.is_before("1.34")

    def check(node: NodeInfo) -> Rejection | None:
        taint = find_untolerated_taint(pod.spec, node.taints, ("NoSchedule", "NoExecute"))
        if taint is None:
            return None
        if not names_taint:
            return _UNTOLERATED
        reason = f"node(s) had untolerated taint {{{taint['key']}: {taint.get('value', '')}}}"
        return Rejection((reason,), is_unresolvable=True)

    return check
