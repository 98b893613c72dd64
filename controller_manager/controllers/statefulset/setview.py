"""A StatefulSet as its controller sees it: the fields that it decides by, with what their absence means."""

from dataclasses import dataclass
from typing import Final

from apimachinery import labels, meta
from apimachinery.intstr import IntOrString
from apimachinery.labels import Selector
from controller_manager.runtime.resource import Key, Tree

_REVISION_HISTORY_LIMIT: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SetView:
    object: Tree
    key: Key
    uid: str
    deleting: bool
    selector: Selector
    service_name: str
    replicas: int
    start: int
    """The ordinal of the first pod."""
    parallel: bool
    """Pods need not wait for each other when they come and go."""
    on_delete: bool
    """Pods take the new template only when somebody deletes them."""
    partition: int | None
    """How many pods, from the first, keep the current revision; None if the set does not say how it rolls."""
    max_unavailable: IntOrString | None
    """None unless the server knows the field: then pods are replaced one by one."""
    min_ready_seconds: int
    claim_templates: tuple[Tree, ...]
    claims_go_when_scaled: bool
    claims_go_when_deleted: bool
    revision_history_limit: int

    @classmethod
    def of(cls, tree: Tree) -> "SetView":
        """The view, or `SelectorError`."""
        spec = tree["spec"]
        strategy = spec.get("updateStrategy") or {}
        rolling = strategy.get("rollingUpdate")
        retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
        return cls(
            object=tree,
            key=Key(meta.namespace(tree), meta.name(tree)),
            uid=meta.uid(tree),
            deleting=meta.is_deleting(tree),
            selector=labels.from_label_selector(spec.get("selector")),
            service_name=spec.get("serviceName") or "",
            replicas=_number(spec.get("replicas"), 1),
            start=(spec.get("ordinals") or {}).get("start") or 0,
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

    @property
    def ordinals(self) -> range:
        return range(self.start, self.start + self.replicas)

    @property
    def status(self) -> Tree:
        return self.object.get("status") or {}


def _number(value: int | None, absent: int) -> int:
    return absent if value is None else value
