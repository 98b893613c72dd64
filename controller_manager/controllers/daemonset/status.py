"""The status of a DaemonSet: on how many nodes it should run, runs, and is ready. Pure."""

from datetime import timedelta
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.timestamps import after, span_of
from mockube.controller_manager.client.kinds import DAEMON_SETS
from mockube.controller_manager.control.actions import Update
from mockube.controller_manager.controllers.daemonset.state import DaemonState, oldest_first

_ALWAYS: Final = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")


def status_update(state: DaemonState) -> tuple[Update, ...]:
    """Write the status if it differs."""
    old = state.daemon_set.get("status") or {}
    new = {**old, **_counts(state), "observedGeneration": meta.generation(state.daemon_set)}
    if all((old.get(field) or 0) == (value or 0) for field, value in new.items()):
        return ()
    status = {field: value for field, value in new.items() if value or field in _ALWAYS}
    body = {**state.daemon_set, "status": status}
    return (Update(resource=DAEMON_SETS, body=body, subresource="status"),)


def _counts(state: DaemonState) -> dict[str, Any]:
    desired = [name for name, fit in state.fits.items() if fit.should_run]
    misscheduled = sum(bool(state.pods.get(name)) for name, fit in state.fits.items() if not fit.should_run)
    first = [oldest_first(state.pods[name])[0] for name in desired if state.pods.get(name)]
    available = sum(state.is_available(pod) for pod in first)
    return {
        "currentNumberScheduled": len(first),
        "numberMisscheduled": misscheduled,
        "desiredNumberScheduled": len(desired),
        "numberReady": sum(pod.is_ready for pod in first),
        "updatedNumberScheduled": sum(map(state.is_updated, first)),
        "numberAvailable": available,
        "numberUnavailable": len(desired) - available,
    }


def next_available(state: DaemonState) -> timedelta | None:
    """When the next pod will have been ready for long enough."""
    wait = span_of(state.min_ready_seconds)
    ready = [pod.ready_since for pods in state.pods.values() for pod in pods if pod.ready_since is not None]
    due = (after(since, wait) - state.now for since in ready)
    return min((delay for delay in due if delay > timedelta()), default=None)
