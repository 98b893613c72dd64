"""Records the Events that all pods of an owner have: on the first of these pods, and then on the owner."""

from collections import OrderedDict
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.events.recorder import Recorder

from .step_effects import EmitEvent

MAX_PODS: Final = 20
"""The number of pods of one owner that have Events of their own."""
_MAX_OWNERS: Final = 10_000
"""The number of owners whose pods are counted; the one whose pods were counted longest ago is dropped first."""


class OwnerEvents:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._pods: OrderedDict[str, dict[str, bool]] = OrderedDict()
        """The first pods of each owner by uid, and one more: whether they have Events of their own, or their owner has them."""

    def record(self, host: str, pod: ReadOnlyTree, event: EmitEvent) -> None:
        owner = meta.controller_of(pod)
        pods = self._pods_of(owner["uid"]) if owner else {}
        uid = meta.uid(pod)
        if uid not in pods and len(pods) > MAX_PODS:
            return
        if owner is None or pods.setdefault(uid, len(pods) < MAX_PODS):
            self._recorder.record_on(host, pod, event.type, event.reason, event.message, part=event.part)
            return
        metadata = {"namespace": meta.namespace(pod), "name": owner["name"], "uid": owner["uid"]}
        about = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "metadata": metadata}
        message = f"{event.message}; only {MAX_PODS} pods have this event"
        self._recorder.record_on(host, about, event.type, event.reason, message)

    def _pods_of(self, owner: str) -> dict[str, bool]:
        pods = self._pods.setdefault(owner, {})
        self._pods.move_to_end(owner)
        if len(self._pods) > _MAX_OWNERS:
            self._pods.popitem(last=False)
        return pods
