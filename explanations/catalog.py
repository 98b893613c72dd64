"""Which function explains the objects of which resource."""

from collections.abc import Callable, Mapping
from typing import Final

from mockube.apimachinery import meta
from mockube.apimachinery.groups import NAMESPACES, NODES, SERVICES, GroupResource
from mockube.apimachinery.tree import ReadOnlyTree

from .claims import explain_claim
from .deletion import explain_deletion, explain_namespace_deletion, explain_pod_deletion
from .disruption import BUDGETS, explain_budget, explain_node
from .explanation import Explanation, no_problem
from .facts import PODS, Facts
from .jobs import explain_cron_job, explain_job
from .others import explain_autoscaler, explain_other, explain_signing_request
from .owners import JOBS, REPLICA_SETS
from .pods import explain_pod
from .services import SLICES, explain_service, explain_slice
from .volumes import CLAIMS
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
    NAMESPACES: lambda namespace, _: no_problem(
        f"its phase is {(namespace.get('status') or {}).get('phase')}"
    ),
    CLAIMS: explain_claim,
    SERVICES: explain_service,
    SLICES: explain_slice,
    GroupResource("autoscaling", "horizontalpodautoscalers"): explain_autoscaler,
    GroupResource("certificates.k8s.io", "certificatesigningrequests"): explain_signing_request,
    GroupResource("apps", "deployments"): explain_deployment,
    GroupResource("apps", "statefulsets"): explain_stateful_set,
    GroupResource("apps", "daemonsets"): explain_daemon_set,
    GroupResource("batch", "cronjobs"): explain_cron_job,
}


DELETIONS: Final[Mapping[GroupResource, Callable[[ReadOnlyTree, Facts], Explanation]]] = {
    PODS: explain_pod_deletion,
    NAMESPACES: explain_namespace_deletion,
}


def explain(resource: GroupResource, obj: ReadOnlyTree, facts: Facts) -> Explanation:
    """Explain the state of an object; raise NotCollected for a fact that is needed."""
    if meta.is_deleting(obj):
        return DELETIONS.get(resource, explain_deletion)(obj, facts)
    explainer = EXPLAINERS.get(resource)
    return explain_other(resource, obj, facts) if explainer is None else explainer(obj, facts)
