"""Records the Events about images of which nothing is known: on pods, and for the many pods of one owner on the owner."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.events.recorder import Recorder

from .effects import EmitEvent

MAX_PODS: Final = 20
"""The number of pods of one owner that have Events of their own."""
_MAX_OWNERS: Final = 10_000
"""The number of owners whose pods are counted; the one whose pods were counted longest ago is dropped first."""


class UnknownImageEvents:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._pods: OrderedDict[str, set[str]] = OrderedDict()
        """The pods of each owner that have Events, by uid."""

    def record(self, node: str, pod: ReadOnlyTree, events: Sequence[EmitEvent]) -> None:
        owner = meta.controller_of(pod)
        pods = self._pods_of(owner["uid"]) if owner else set()
        uid = meta.uid(pod)
        if uid in pods or len(pods) < MAX_PODS:
            pods.add(uid)
            for event in events:
                self._record(node, pod, event, event.message)
        elif owner and len(pods) == MAX_PODS:
            pods.add(uid)
            metadata = {"namespace": meta.namespace(pod), "name": owner["name"], "uid": owner["uid"]}
            about = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "metadata": metadata}
            for event in events:
                message = f"{event.message}; only {MAX_PODS} pods have this event"
                self._record(node, about, event, message)

    def _pods_of(self, owner: str) -> set[str]:
        pods = self._pods.setdefault(owner, set())
        self._pods.move_to_end(owner)
        if len(self._pods) > _MAX_OWNERS:
            self._pods.popitem(last=False)
        return pods

    def _record(self, node: str, about: ReadOnlyTree, event: EmitEvent, message: str) -> None:
        part = event.part if meta.kind(about) == "Pod" else ""
        self._recorder.record_on(node, about, event.type, event.reason, message, part=part)
