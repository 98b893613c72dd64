"""The fields of a CloneSet that its controller reads, with their defaults."""

from typing import Final, Literal

from msgspec import Struct

from mockube.apimachinery import labels, meta
from mockube.apimachinery.intstr import IntOrString, IntOrStringError, scaled_value
from mockube.apimachinery.labels import Selector
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.resources import Key
from mockube.packs.kruise.inplace.lifecycle import Lifecycle
from mockube.packs.kruise.replicas import scaled_share

UpdateType = Literal["ReCreate", "InPlaceIfPossible", "InPlaceOnly", "OnDelete"]

LABEL_EXCLUDE_PREPARING_DELETE: Final = "apps.kruise.io/cloneset-scaling-exclude-preparing-delete"

_DEFAULT_REVISION_HISTORY_LIMIT: Final = 10
_DEFAULT_MAX_UNAVAILABLE: Final = "20%"
_NO_DEADLINE: Final = 2**31 - 1


class CloneSetLimits(Struct, frozen=True, kw_only=True):
    """The limits of scaling and updates, as numbers of pods."""

    replicas: int
    partition: int
    """The number of pods that keep the current revision."""
    max_unavailable: int
    max_surge: int
    scale_max_unavailable: int | None
    """The number of pods that may be unavailable while others are created; None for any number."""
    excludes_preparing_delete: bool
    """Whether pods in the lifecycle state PreparingDelete do not count as replicas."""


class CloneSetView(Struct, frozen=True, kw_only=True, eq=False):
    object: ReadOnlyTree
    key: Key
    uid: str
    resource_version: str
    deleting: bool
    selector: Selector
    limits: CloneSetLimits
    template: ReadOnlyTree
    claim_templates: tuple[ReadOnlyTree, ...]
    reuses_claims: bool
    """Whether a new pod takes the claims of a pod that was lost."""
    pods_to_delete: frozenset[str]
    update_type: UpdateType
    paused: bool
    priority: ReadOnlyTree | None
    scatter: tuple[ReadOnlyTree, ...]
    grace_seconds: int
    lifecycle: Lifecycle
    min_ready_seconds: int
    progress_deadline_seconds: int | None
    revision_history_limit: int

    @classmethod
    def of(cls, tree: ReadOnlyTree) -> "CloneSetView":
        """Read a CloneSet; raise `SelectorError` if its selector is invalid."""
        spec = tree["spec"]
        scale, update = spec.get("scaleStrategy") or {}, spec.get("updateStrategy") or {}
        deadline = spec.get("progressDeadlineSeconds")
        return cls(
            object=tree,
            key=Key.of(tree),
            uid=meta.uid(tree),
            resource_version=meta.resource_version(tree),
            deleting=meta.is_deleting(tree),
            selector=labels.from_label_selector(spec.get("selector")),
            limits=_limits(tree, spec, scale, update),
            template=spec["template"],
            claim_templates=tuple(spec.get("volumeClaimTemplates") or ()),
            reuses_claims=not scale.get("disablePVCReuse"),
            pods_to_delete=frozenset(scale.get("podsToDelete") or ()),
            update_type=update.get("type") or "ReCreate",
            paused=bool(update.get("paused")),
            priority=update.get("priorityStrategy"),
            scatter=tuple(update.get("scatterStrategy") or ()),
            grace_seconds=(update.get("inPlaceUpdateStrategy") or {}).get("gracePeriodSeconds") or 0,
            lifecycle=Lifecycle.of(spec),
            min_ready_seconds=spec.get("minReadySeconds") or 0,
            progress_deadline_seconds=None if deadline == _NO_DEADLINE else deadline,
            revision_history_limit=_number(spec.get("revisionHistoryLimit"), _DEFAULT_REVISION_HISTORY_LIMIT),
        )

    @property
    def status(self) -> ReadOnlyTree:
        return self.object.get("status") or {}

    @property
    def updates_pods(self) -> bool:
        """Whether pods of other revisions are updated; if not, they are replaced only when others delete them."""
        return not self.paused and self.update_type != "OnDelete"


def _limits(
    tree: ReadOnlyTree, spec: ReadOnlyTree, scale: ReadOnlyTree, update: ReadOnlyTree
) -> CloneSetLimits:
    replicas = _number(spec.get("replicas"), 1)
    surge = 0 if update.get("paused") else _scale(update.get("maxSurge") or 0, replicas, round_up=True)
    unavailable = update.get("maxUnavailable")
    max_unavailable = _DEFAULT_MAX_UNAVAILABLE if unavailable is None else unavailable
    scale_max_unavailable = scale.get("maxUnavailable")
    return CloneSetLimits(
        replicas=replicas,
        partition=partition_replicas(update.get("partition"), replicas),
        # Without surge this is rounded up: a small workload could not be updated otherwise.
        max_unavailable=_scale(max_unavailable, replicas, round_up=surge == 0),
        max_surge=surge,
        scale_max_unavailable=(
            None if scale_max_unavailable is None else _scale(scale_max_unavailable, replicas, round_up=True)
        ),
        excludes_preparing_delete=bool(scale.get("excludePreparingDelete"))
        or meta.labels(tree).get(LABEL_EXCLUDE_PREPARING_DELETE) == "true",
    )


def partition_replicas(partition: IntOrString | None, replicas: int) -> int:
    """Return the number of pods that keep their revision.

    A percentage below 100% is rounded up, but at least one pod is updated.
    """
    try:
        count = scaled_share(partition or 0, replicas)
    except IntOrStringError:
        return 0  # no server with OpenKruise's validation accepts it
    if isinstance(partition, str) and count == replicas > 1 and partition != "100%":
        count = replicas - 1
    return max(min(count, replicas), 0)


def _scale(value: IntOrString, replicas: int, *, round_up: bool) -> int:
    try:
        return scaled_value(value, replicas, round_up=round_up)
    except IntOrStringError:
        return 0  # no server with upstream's validation accepts it


def _number(value: int | None, absent: int) -> int:
    return absent if value is None else value
