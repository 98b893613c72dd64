"""The background tasks of a server: what happens when one fails, and the names of their checks."""

from collections.abc import Mapping
from typing import Final

from mockube.component_base.task_supervisor import OnFailure

TASKS: Final[Mapping[str, OnFailure]] = {
    "watch-cache": OnFailure.RESTART,
    "control-watch-cache": OnFailure.RESTART,
    "control-faults": OnFailure.RESTART,
    "control-partitions": OnFailure.RESTART,
    "watch-cache-lag": OnFailure.RESTART,
    "api-service-availability": OnFailure.RESTART,
    "api-service-registration": OnFailure.RESTART,
    "flow-schema-status": OnFailure.RESTART,
    "system-objects": OnFailure.RESTART,
    "crd-establishing": OnFailure.RESTART,
    "unreconciled-objects": OnFailure.RESTART,
    "authentication-config": OnFailure.RESTART,
    "authentication-trust": OnFailure.RESTART,
    "serving-certificates": OnFailure.RESTART,
    "authorization-config": OnFailure.RESTART,
    "compaction": OnFailure.RESTART,
    "identity-lease": OnFailure.RESTART,
    "kubernetes-endpoints": OnFailure.RESTART,
    "watch-cache-check": OnFailure.RESTART,
    "bootstrap-roles": OnFailure.RESTART,
    "listeners": OnFailure.RESTART,
    "store": OnFailure.END,
}


def is_restarted(name: str) -> bool:
    return TASKS[name] is OnFailure.RESTART


def check_name(name: str) -> str:
    """Return the name of a task's check in `/readyz`."""
    return f"task-{name}"
