"""Lifecycle states of pods, in a label, and the hooks with which other controllers hold pods in a state."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.podview import PodView

LABEL_STATE: Final = "lifecycle.apps.kruise.io/state"
ANNOTATION_SINCE: Final = "lifecycle.apps.kruise.io/timestamp"


class LifecycleState:
    """The values of the state label, which a pod without a lifecycle does not have."""

    PREPARING_NORMAL: Final = "PreparingNormal"
    NORMAL: Final = "Normal"
    PREPARING_UPDATE: Final = "PreparingUpdate"
    UPDATING: Final = "Updating"
    UPDATED: Final = "Updated"
    PREPARING_DELETE: Final = "PreparingDelete"


class LifecycleHook(Struct, frozen=True, kw_only=True):
    """The labels and finalizers that hold a pod in a state."""

    labels: Mapping[str, str]
    finalizers: tuple[str, ...]
    marks_not_ready: bool
    """Whether a pod that is held is taken out of service."""

    def holds(self, pod: PodView) -> bool:
        """Return whether the pod has one of the hook's labels or finalizers, which delay its next state."""
        finalizers = meta.finalizers(pod.object)
        return any(finalizer in finalizers for finalizer in self.finalizers) or any(
            pod.labels.get(key) == value for key, value in self.labels.items()
        )

    def has_all_hooks(self, pod: PodView) -> bool:
        """Return whether the pod has all of the hook's labels and finalizers."""
        finalizers = meta.finalizers(pod.object)
        return all(finalizer in finalizers for finalizer in self.finalizers) and all(
            pod.labels.get(key) == value for key, value in self.labels.items()
        )


class Lifecycle(Struct, frozen=True, kw_only=True):
    """The hooks of a workload; None for those that it does not have."""

    pre_normal: LifecycleHook | None
    in_place_update: LifecycleHook | None
    pre_delete: LifecycleHook | None

    @classmethod
    def of(cls, spec: ReadOnlyTree) -> "Lifecycle":
        """Read the hooks from the spec of a workload."""
        lifecycle = spec.get("lifecycle") or {}
        return cls(
            pre_normal=_hook(lifecycle.get("preNormal")),
            in_place_update=_hook(lifecycle.get("inPlaceUpdate")),
            pre_delete=_hook(lifecycle.get("preDelete")),
        )

    def hook_of_state(self, state: str) -> LifecycleHook | None:
        """Return the hook that holds pods in a state."""
        hooks = {
            LifecycleState.PREPARING_UPDATE: self.in_place_update,
            LifecycleState.PREPARING_DELETE: self.pre_delete,
        }
        return hooks.get(state)

    @property
    def marks_not_ready(self) -> bool:
        return any(
            hook is not None and hook.marks_not_ready for hook in (self.pre_delete, self.in_place_update)
        )


def _hook(handler: ReadOnlyTree | None) -> LifecycleHook | None:
    if handler is None:
        return None
    return LifecycleHook(
        labels=handler.get("labelsHandler") or {},
        finalizers=tuple(handler.get("finalizersHandler") or ()),
        marks_not_ready=bool(handler.get("markPodNotReady")),
    )


def state_of(pod: PodView) -> str:
    return pod.labels.get(LABEL_STATE, "")


def is_settled(pod: PodView) -> bool:
    """Return whether the pod is in no transition between lifecycle states."""
    return state_of(pod) in ("", LifecycleState.NORMAL)


def labels_of(state: str) -> dict[str, str]:
    return {LABEL_STATE: state}


def annotations_of(now: datetime) -> dict[str, str]:
    return {ANNOTATION_SINCE: format_time(now)}


def next_state(pod: PodView, lifecycle: Lifecycle, *, is_updated: bool, is_finished: bool) -> str | None:
    """Return the state to which the pod moves now; None if it stays in its state.

    `is_updated`: the pod has the desired revision. `is_finished`: it has no in-place update in progress.
    """
    hook = lifecycle.in_place_update
    match state_of(pod):
        case LifecycleState.PREPARING_NORMAL:
            pre_normal = lifecycle.pre_normal
            is_prepared = bool(pod.node) if pre_normal is None else pre_normal.has_all_hooks(pod)
            return LifecycleState.NORMAL if is_prepared else None
        case LifecycleState.PREPARING_UPDATE if is_updated:
            return _state_after_update(pod, hook)
        case LifecycleState.UPDATING if is_finished:
            return _state_after_update(pod, hook)
        case LifecycleState.UPDATED if hook is None or hook.has_all_hooks(pod):
            return LifecycleState.NORMAL
        case _:
            return None


def _state_after_update(pod: PodView, hook: LifecycleHook | None) -> str:
    return LifecycleState.NORMAL if hook is None or hook.has_all_hooks(pod) else LifecycleState.UPDATED
