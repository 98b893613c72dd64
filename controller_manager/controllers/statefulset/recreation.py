"""The update strategy Recreate: all old pods are deleted, and when they are gone, new ones are created."""

from typing import Any, Final

from mockube.apimachinery import conditions
from mockube.apimachinery.status import ApiError
from mockube.client.podview import PodView
from mockube.controller_manager.control.actions import RecordEvent
from mockube.controller_manager.workloads.stateful import identity, status
from mockube.controller_manager.workloads.stateful.reconciliation import Preparation
from mockube.controller_manager.workloads.stateful.state import StatefulSetState

GATE: Final = "StatefulSetRecreateStrategy"
_ADDED_IN: Final = "1.37"
"""The first minor release that implements the strategy; earlier ones update as with RollingUpdate."""
_PROGRESSING: Final = "Progressing"


def is_used(state: StatefulSetState) -> bool:
    return state.owner.recreates and not state.gates.is_before(_ADDED_IN)


def prepare(state: StatefulSetState) -> Preparation | None:
    """Return the deletion of old pods; None once they are gone."""
    if not is_used(state):
        return None
    if not state.gates.is_on(GATE):
        return Preparation((_gate_event(state),), reports_status=False)
    old = _old_pods(state)
    if not old:
        return None
    return Preparation(status.deletion(state.owner, [pod for pod in old if not pod.deleting]))


def _old_pods(state: StatefulSetState) -> list[PodView]:
    return [pod for pod in state.owned if identity.revision_of(pod) != state.update_name]


def _gate_event(state: StatefulSetState) -> RecordEvent:
    owner = state.owner
    message = f"statefulset {owner.key} uses Recreate strategy but feature gate {GATE} is disabled"
    return RecordEvent(about=owner.object, type="Warning", reason="UnknownStrategy", message=message)


def with_progress(
    state: StatefulSetState, new_status: dict[str, Any], error: ApiError | None
) -> dict[str, Any]:
    """Return the status with the condition Progressing, which an update with this strategy sets."""
    if not is_used(state):
        return new_status
    present = conditions.of(state.owner.object)
    step = _step(state, error)
    if step is not None:
        present = conditions.set_condition(present, _progressing(*step), state.now)
    if status.is_complete(new_status, state.owner.replicas) and conditions.find(present, _PROGRESSING):
        completed = _progressing("False", "RecreateCompleted", "All pods recreated successfully")
        present = conditions.set_condition(present, completed, state.now)
    return {**new_status, "conditions": [*present]}


def _step(state: StatefulSetState, error: ApiError | None) -> tuple[str, str, str] | None:
    """Return the status, reason and message of the update in progress."""
    if _old_pods(state):
        # The failure of a deletion is not progress.
        return None if error else ("True", "RecreateInProgress", "Deleting old revision pods")
    if state.current_name != state.update_name:
        return "True", "RecreateInProgress", "Waiting for new-revision pods to be created"
    return None


def _progressing(condition_status: str, reason: str, message: str) -> dict[str, str]:
    return {"type": _PROGRESSING, "status": condition_status, "reason": reason, "message": message}
