"""A StatefulSet as its controller sees it: the fields that it decides by, with what their absence means."""

from collections.abc import Collection
from typing import Final

from msgspec import Struct

from mockube.apimachinery import labels, meta
from mockube.apimachinery.intstr import IntOrString
from mockube.apimachinery.labels import Selector
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.resources import Key, Resource

_REVISION_HISTORY_LIMIT: Final = 10


class SetView(Struct, frozen=True, kw_only=True, eq=False):
    resource: Resource[ReadOnlyTree]
    object: ReadOnlyTree
    key: Key
    uid: str
    deleting: bool
    selector: Selector
    service_name: str
    replicas: int
    start: int
    """The ordinal of the first pod."""
    ordinals: Collection[int]
    """Those of the pods that there should be, in order."""
    parallel: bool
    """Whether pods are created and deleted without waiting for each other."""
    on_delete: bool
    """Pods get the new template only when a user deletes them."""
    partition: int | None
    """How many pods, from the first, keep the current revision; None without a rolling update strategy."""
    max_unavailable: IntOrString | None
    """None unless it is set, and the server has the field."""
    min_ready_seconds: int
    claim_templates: tuple[ReadOnlyTree, ...]
    claims_go_when_scaled: bool
    claims_go_when_deleted: bool
    controls_claims: bool = True
    """Whether claims have the set or pod as their controller, or as an ordinary owner."""
    revision_history_limit: int
    scale_limit: int | None = None
    """How many unavailable pods are enough to make no further ones, in parallel."""
    titles_events: bool = True
    """Whether an event's message begins with a capital letter."""
    waits_for_ended: bool = False
    """A pod that ended, or one whose claim is not free, holds up all others even in parallel."""

    @classmethod
    def of(cls, resource: Resource[ReadOnlyTree], tree: ReadOnlyTree) -> "SetView":
        """The view by what all kinds of sets have, or `SelectorError`."""
        spec = tree["spec"]
        strategy = spec.get("updateStrategy") or {}
        rolling = strategy.get("rollingUpdate")
        retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
        start = (spec.get("ordinals") or {}).get("start") or 0
        replicas = _number(spec.get("replicas"), 1)
        return cls(
            resource=resource,
            object=tree,
            key=Key.of(tree),
            uid=meta.uid(tree),
            deleting=meta.is_deleting(tree),
            selector=labels.from_label_selector(spec.get("selector")),
            service_name=spec.get("serviceName") or "",
            replicas=replicas,
            start=start,
            ordinals=range(start, start + replicas),
            parallel=spec.get("podManagementPolicy") == "Parallel",
            on_delete=strategy.get("type") == "OnDelete",
            partition=None if rolling is None else rolling.get("partition") or 0,
            max_unavailable=(rolling or {}).get("maxUnavailable"),
            min_ready_seconds=spec.get("minReadySeconds") or 0,
            claim_templates=tuple(spec.get("volumeClaimTemplates") or ()),
            claims_go_when_scaled=retention.get("whenScaled") == "Delete",
            claims_go_when_deleted=retention.get("whenDeleted") == "Delete",
            revision_history_limit=_number(spec.get("revisionHistoryLimit"), _REVISION_HISTORY_LIMIT),
        )

    def event_verb(self, verb: str) -> str:
        """Return how messages of events begin."""
        return verb.title() if self.titles_events else verb

    @property
    def status(self) -> ReadOnlyTree:
        return self.object.get("status") or {}


def _number(value: int | None, absent: int) -> int:
    return absent if value is None else value
