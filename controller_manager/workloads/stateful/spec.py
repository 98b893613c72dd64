"""The view of a StatefulSet: the fields that its controller reads, with their defaults."""

from collections.abc import Collection
from typing import Final

from msgspec import Struct

from mockube.apimachinery import labels, meta
from mockube.apimachinery.intstr import IntOrString
from mockube.apimachinery.labels import Selector
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.resources import Key, Resource

_REVISION_HISTORY_LIMIT: Final = 10


class SetView(Struct, frozen=True, kw_only=True, eq=False):
    """A StatefulSet of any kind."""

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
    """The ordinals of the desired pods, in order."""
    parallel: bool
    """Whether pods are created and deleted without waiting for each other."""
    on_delete: bool
    """Whether pods get a new template only after a user has deleted them."""
    recreates: bool
    """Whether an update deletes all old pods before it creates new ones."""
    partition: int | None
    """The number of pods, from the first, that keep the current revision; None without a rolling update strategy."""
    max_unavailable: IntOrString | None
    """The maximum of unavailable pods; None if it is not set."""
    min_ready_seconds: int
    claim_templates: tuple[ReadOnlyTree, ...]
    deletes_claims_when_scaled: bool
    deletes_claims_when_deleted: bool
    controls_claims: bool = True
    """Whether owner references of claims to the set or pod are controller references."""
    revision_history_limit: int
    scale_limit: int | None = None
    """The number of unavailable pods at which no further pods are created in parallel; None for no limit."""
    capitalizes_events: bool = True
    """Whether messages of Events begin with a capital letter."""
    blocks_on_terminal_pods: bool = False
    """Whether a terminal pod, or a pod whose claim is being deleted, blocks all others even in parallel."""

    @classmethod
    def of(cls, resource: Resource[ReadOnlyTree], tree: ReadOnlyTree) -> "SetView":
        """Return the view with the fields that all kinds have. Raises `SelectorError`."""
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
            recreates=strategy.get("type") == "Recreate",
            partition=None if rolling is None else rolling.get("partition") or 0,
            max_unavailable=(rolling or {}).get("maxUnavailable"),
            min_ready_seconds=spec.get("minReadySeconds") or 0,
            claim_templates=tuple(spec.get("volumeClaimTemplates") or ()),
            deletes_claims_when_scaled=retention.get("whenScaled") == "Delete",
            deletes_claims_when_deleted=retention.get("whenDeleted") == "Delete",
            revision_history_limit=_number(spec.get("revisionHistoryLimit"), _REVISION_HISTORY_LIMIT),
        )

    def event_verb(self, verb: str) -> str:
        """Return the verb at the beginning of an Event's message."""
        return verb.title() if self.capitalizes_events else verb

    @property
    def status(self) -> ReadOnlyTree:
        return self.object.get("status") or {}


def _number(value: int | None, default: int) -> int:
    return default if value is None else value
