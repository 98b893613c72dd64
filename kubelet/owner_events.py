"""Records the Events that all pods of an owner have: on the first of these pods, and then on the owner."""

from collections import OrderedDict
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.events.recorder import Recorder
from mockube.container_runtime.records import Records

from .step_effects import EmitEvent

MAX_PODS: Final = 20
"""The number of pods of one owner that have Events of their own."""
_MAX_OWNERS: Final = 10_000
"""The number of owners whose pods are counted; the one whose pods were counted longest ago is dropped first."""


class _Number(int):
    """The number of a pod among those of its owner that have had such Events, from 0."""


class OwnerEvents:
    def __init__(self, records: Records, recorder: Recorder) -> None:
        self._records = records
        self._recorder = recorder
        self._counts: OrderedDict[str, int] = OrderedDict()
        """How many pods of each owner have had such Events."""

    def record(self, host: str, pod: ReadOnlyTree, event: EmitEvent) -> None:
        owner = meta.controller_of(pod)
        number = 0 if owner is None else self._number(meta.uid(pod), owner["uid"])
        if number > MAX_PODS:
            return
        if owner is None or number < MAX_PODS:
            self._recorder.record_on(host, pod, event.type, event.reason, event.message, part=event.part)
            return
        metadata = {"namespace": meta.namespace(pod), "name": owner["name"], "uid": owner["uid"]}
        about = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "metadata": metadata}
        message = f"{event.message}; only {MAX_PODS} pods have this event"
        self._recorder.record_on(host, about, event.type, event.reason, message)

    def _number(self, uid: str, owner: str) -> int:
        present = self._records.find(uid, _Number)
        if present is not None:
            return present
        number = self._counts.pop(owner, 0)
        self._counts[owner] = number + 1
        if len(self._counts) > _MAX_OWNERS:
            self._counts.popitem(last=False)
        self._records.put(uid, _Number(number))
        return number
