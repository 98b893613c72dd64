"""The PodDisruptionBudget controller: its watches, and its reconcile function."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final, Literal

from mockube.apimachinery import labels, meta
from mockube.apimachinery.labels import SelectorError
from mockube.apimachinery.patch.draft import equal
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.cache.store import Caches, Change
from mockube.client.kinds import POD_DISRUPTION_BUDGETS, PODS
from mockube.client.podview import PodView
from mockube.client.resources import Key
from mockube.controller_manager.control.actions import EMPTY_PLAN, Action, Plan, RecordEvent, Update
from mockube.controller_manager.control.controller import Controller, Watch, key_of_object

from . import budget as budgets
from .scale import OWNERS_WITH_SCALE, UnknownScaleError

_UNMANAGED: Final = (
    "Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. As a result, "
    "the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for "
    'these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
)


def reconcile(caches: Caches, key: Key, now: datetime) -> Plan:
    budget = caches.of(POD_DISRUPTION_BUDGETS).get(*key)
    if budget is None:
        return EMPTY_PLAN
    try:
        pods = _select_pods(caches, budget, key.namespace)
    except SelectorError:
        return EMPTY_PLAN  # no server accepts such a budget, and a retry would not help
    no_pods_events = [] if pods else [_record_event(budget, "Normal", "NoPods", "No matching pods found")]
    try:
        counts = budgets.desired_healthy(caches, budget, pods)
    except UnknownScaleError as problem:
        message = f"Failed to calculate the number of expected pods: {problem}"
        event = _record_event(budget, "Warning", "CalculateExpectedPodCountFailed", message)
        budget_status = budgets.failed_status(budget, str(problem), now)
        return Plan(actions=(*no_pods_events, event, *_status_update(budget, budget_status)))
    disrupted = budgets.disrupted_pods(budget, pods, now)
    budget_status = budgets.status(budget, pods, counts, disrupted.expected, now)
    unmanaged = [_unmanaged_event(budget)] if counts.unmanaged else []
    overdue = [_overdue_event(pod) for pod in disrupted.overdue]
    return Plan(
        actions=(*no_pods_events, *unmanaged, *overdue, *_status_update(budget, budget_status)),
        requeue_after=None if disrupted.next_check is None else disrupted.next_check - now,
    )


def _select_pods(caches: Caches, budget: ReadOnlyTree, namespace: str) -> list[PodView]:
    selector = labels.from_label_selector(budget["spec"].get("selector"))
    return [pod for pod in caches.of(PODS).in_namespace(namespace) if selector.matches(pod.labels)]


def _status_update(budget: ReadOnlyTree, status: dict[str, Any]) -> tuple[Action, ...]:
    if equal(budget.get("status") or {}, status):
        return ()
    body = {**budget, "status": status}
    return (Update(resource=POD_DISRUPTION_BUDGETS, body=body, subresource="status"),)


def _unmanaged_event(budget: ReadOnlyTree) -> RecordEvent:
    text = _UNMANAGED.format(selector=labels.selector_text(budget["spec"].get("selector")))
    return _record_event(budget, "Warning", "UnmanagedPods", text)


def _overdue_event(pod: PodView) -> RecordEvent:
    # Upstream's text has the namespace twice, and no name.
    name = f"{pod.key.namespace}/{pod.key.namespace}"
    message = f"Pod was expected by PDB {name} to be deleted but it wasn't"
    return _record_event(pod.object, "Warning", "NotDeleted", message)


def _record_event(
    about: ReadOnlyTree, kind: Literal["Normal", "Warning"], reason: str, message: str
) -> RecordEvent:
    return RecordEvent(about=about, type=kind, reason=reason, message=message)


# --- the budgets that a change affects


def _budgets_of_pod(caches: Caches, change: Change) -> Iterable[Key]:
    """Return the keys of the budgets that select the pod now or did before."""
    versions: list[PodView] = [pod for pod in change if pod is not None]
    return {key for pod in versions for key in _selecting_budgets(caches, pod.key.namespace, pod.labels)}


def _budgets_of_scaled_owner(caches: Caches, change: Change) -> Iterable[Key]:
    """Return the keys of the budgets of a scaled controller's pods, whose changes would be too late or absent."""
    scales = [owner and owner["spec"].get("replicas") for owner in change]
    if scales[0] == scales[1]:
        return ()
    owner: ReadOnlyTree = change.last_known
    template = owner["spec"].get("template") or {}
    return set(_selecting_budgets(caches, meta.namespace(owner), meta.labels(template)))


def _selecting_budgets(caches: Caches, namespace: str, pod_labels: Mapping[str, str]) -> Iterable[Key]:
    for budget in caches.of(POD_DISRUPTION_BUDGETS).in_namespace(namespace):
        if _selects(budget, pod_labels):
            yield Key.of(budget)


def _selects(budget: ReadOnlyTree, pod_labels: Mapping[str, str]) -> bool:
    try:
        return labels.from_label_selector(budget["spec"].get("selector")).matches(pod_labels)
    except SelectorError:  # as upstream: such a budget matches no pod (client-go, listers/policy/v1)
        return False


DISRUPTION: Final = Controller(
    name="disruption-controller",
    queue="disruption",
    service_account="disruption-controller",
    event_component="controllermanager",
    watches=(
        Watch(resource=POD_DISRUPTION_BUDGETS, keys=key_of_object),
        Watch(resource=PODS, keys=_budgets_of_pod),
        *(Watch(resource=resource, keys=_budgets_of_scaled_owner) for resource in OWNERS_WITH_SCALE),
    ),
    reconcile=reconcile,
    workers=1,
)
