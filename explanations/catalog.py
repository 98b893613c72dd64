"""Which function explains the objects of which resource."""

from collections.abc import Callable, Mapping
from typing import Final

from mockube.apimachinery import conditions
from mockube.apimachinery.groups import NODES, GroupResource
from mockube.apimachinery.tree import ReadOnlyTree

from .disruption import BUDGETS, explain_budget, explain_node
from .explanation import Explanation, unknown
from .facts import PODS, Facts
from .jobs import explain_cron_job, explain_job
from .owners import JOBS, REPLICA_SETS
from .pods import explain_pod
from .records import condition_evidence
from .workloads import (
    explain_daemon_set,
    explain_deployment,
    explain_replica_set,
    explain_stateful_set,
)

EXPLAINERS: Final[Mapping[GroupResource, Callable[[ReadOnlyTree, Facts], Explanation]]] = {
    PODS: explain_pod,
    NODES: explain_node,
    BUDGETS: explain_budget,
    JOBS: explain_job,
    REPLICA_SETS: explain_replica_set,
    GroupResource("apps", "deployments"): explain_deployment,
    GroupResource("apps", "statefulsets"): explain_stateful_set,
    GroupResource("apps", "daemonsets"): explain_daemon_set,
    GroupResource("batch", "cronjobs"): explain_cron_job,
}


def explain(resource: GroupResource, obj: ReadOnlyTree, facts: Facts) -> Explanation:
    """Explain the state of an object; raise NotCollected for a fact that is needed."""
    explainer = EXPLAINERS.get(resource)
    return explain_conditions(obj) if explainer is None else explainer(obj, facts)


def explain_conditions(obj: ReadOnlyTree) -> Explanation:
    """Say what the conditions of an object of any kind say: what they mean is not known."""
    found = [each for each in conditions.of(obj) if isinstance(each, dict)]
    if not found:
        return unknown("mockube knows nothing of objects of this kind, and the object has no conditions")
    return unknown(
        "mockube knows nothing of objects of this kind; its conditions are the evidence",
        *map(condition_evidence, found),
    )
