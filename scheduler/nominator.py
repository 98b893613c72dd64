"""The pods that are nominated for a node, where they wait for the end of preempted pods.

Upstream: backend/queue/nominator.go.
"""

from collections.abc import Sequence

from .podinfo import PodInfo


class Nominator:
    def __init__(self) -> None:
        self._nominations: dict[str, tuple[str, PodInfo]] = {}
        """The node and the pod of each nomination, by the pod's uid."""

    def nominate(self, pod: PodInfo, node: str) -> None:
        self._nominations[pod.view.uid] = (node, pod)

    def nominate_in_place_of_lower(self, pod: PodInfo, node: str) -> Sequence[PodInfo]:
        """Nominate a pod, end the nominations of pods of lower priority for its node, and return these."""
        displaced = [nominee for nominee in self.pods_on(node) if nominee.priority < pod.priority]
        for nominee in displaced:
            self.delete(nominee.view.uid)
        self.nominate(pod, node)
        return displaced

    def delete(self, uid: str) -> bool:
        """End the nomination of a pod; return whether it had one."""
        return self._nominations.pop(uid, None) is not None

    def pods_on(self, node: str) -> Sequence[PodInfo]:
        return [pod for node_name, pod in self._nominations.values() if node_name == node]

    def must_leave_room(self, pod: PodInfo) -> bool:
        """Return whether other pods are nominated for nodes that the pod may not take from them."""
        return any(
            nominee.priority >= pod.priority and uid != pod.view.uid
            for uid, (_, nominee) in self._nominations.items()
        )
