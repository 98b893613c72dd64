"""Which function explains the objects of which resource."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.groups import NAMESPACES, NODES, PODS, SERVICES, GroupResource
from mockube.apimachinery.tree import MALFORMED_OBJECT_ERRORS, ReadOnlyTree

from .claims import explain_claim
from .commands import explanation_command
from .completion import completed
from .deletion import explain_deletion, explain_namespace_deletion, explain_pod_deletion
from .disruption import BUDGETS, explain_budget, explain_node
from .explanation import Explanation, ObjectName, Related, Remedy, no_problem, unknown
from .facts import FAULTS, Facts
from .gateways import CLASSES as GATEWAY_CLASSES
from .gateways import GATEWAYS, ROUTES, explain_gateway, explain_gateway_class, explain_route
from .ingresses import INGRESSES, explain_ingress
from .jobs import explain_cron_job, explain_job
from .network_policies import POLICIES, explain_policy
from .others import (
    AUTOSCALERS,
    DEFINITIONS,
    explain_autoscaler,
    explain_definition,
    explain_other,
    explain_signing_request,
)
from .owners import DAEMON_SETS, DEPLOYMENTS, JOBS, REPLICA_SETS, STATEFUL_SETS
from .partitions import explain_fault
from .pods import explain_pod
from .role_bindings import BINDINGS, explain_binding
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
    FAULTS: explain_fault,
    BUDGETS: explain_budget,
    JOBS: explain_job,
    REPLICA_SETS: explain_replica_set,
    NAMESPACES: lambda namespace, _: no_problem(
        f"its phase is {(namespace.get('status') or {}).get('phase')}"
    ),
    CLAIMS: explain_claim,
    SERVICES: explain_service,
    SLICES: explain_slice,
    INGRESSES: explain_ingress,
    GATEWAYS: explain_gateway,
    GATEWAY_CLASSES: explain_gateway_class,
    **dict.fromkeys(ROUTES, explain_route),
    AUTOSCALERS: explain_autoscaler,
    GroupResource("certificates.k8s.io", "certificatesigningrequests"): explain_signing_request,
    DEFINITIONS: explain_definition,
    POLICIES: explain_policy,
    **dict.fromkeys(BINDINGS, explain_binding),
    DEPLOYMENTS: explain_deployment,
    STATEFUL_SETS: explain_stateful_set,
    DAEMON_SETS: explain_daemon_set,
    GroupResource("batch", "cronjobs"): explain_cron_job,
}


_BY_KIND: Final[Mapping[tuple[str, str], GroupResource]] = {
    ("", "Pod"): PODS,
    ("", "Service"): SERVICES,
    ("", "PersistentVolumeClaim"): CLAIMS,
    ("apps", "Deployment"): DEPLOYMENTS,
    ("apps", "ReplicaSet"): REPLICA_SETS,
    ("apps", "StatefulSet"): STATEFUL_SETS,
    ("apps", "DaemonSet"): DAEMON_SETS,
    ("batch", "Job"): JOBS,
}
"""The kinds of dependents that are explained with their owner."""
MAX_DEPENDENTS: Final = 20
DELETIONS: Final[Mapping[GroupResource, Callable[[ReadOnlyTree, Facts], Explanation]]] = {
    PODS: explain_pod_deletion,
    NAMESPACES: explain_namespace_deletion,
}


def explain(resource: GroupResource, obj: ReadOnlyTree, facts: Facts) -> Explanation:
    """Explain the state of an object; raise NotCollected for a fact that is needed."""
    try:
        return completed(_explain(resource, obj, facts), facts)
    except MALFORMED_OBJECT_ERRORS as error:
        return unknown(f"the object, or one that it needs, has fields of wrong types: {type(error).__name__}")


def _explain(resource: GroupResource, obj: ReadOnlyTree, facts: Facts) -> Explanation:
    if meta.is_deleting(obj):
        return DELETIONS.get(resource, explain_deletion)(obj, facts)
    explainer = EXPLAINERS.get(resource)
    return _explain_other(resource, obj, facts) if explainer is None else explainer(obj, facts)


def _explain_other(resource: GroupResource, obj: ReadOnlyTree, facts: Facts) -> Explanation:
    """Explain an object of a kind that is not known; what it owns may have causes that are."""
    explanation = explain_other(resource, obj, facts)
    if explanation.state != "Unknown":
        return explanation
    related = [*_dependents(obj, facts)]
    if not related:
        return explanation
    first = related[0]
    command = explanation_command(first.object.kind, first.object.namespace, first.object.name)
    return replace(
        explanation,
        cause=f"{len(related)} of its dependents are not as they should be, such as {first.object}: {first.cause}; "
        f"{explanation.cause}",
        related=related,
        remedies=[Remedy(text="More about the first one:", command=command)],
    )


def _dependents(obj: ReadOnlyTree, facts: Facts) -> Iterator[Related]:
    """Yield the first dependents whose state has a cause."""
    for head in facts.dependents_of(obj)[:MAX_DEPENDENTS]:
        resource = _BY_KIND.get((meta.api_version(head).rpartition("/")[0], meta.kind(head)))
        found = None if resource is None else facts.find(resource, meta.namespace(head), meta.name(head))
        if resource is not None and found is not None:
            explanation = _explain(resource, found, facts)
            if explanation.state == "Explained":
                yield Related(object=ObjectName.of(head), cause=explanation.cause)
