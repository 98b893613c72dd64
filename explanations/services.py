"""Why a Service, or an EndpointSlice of it, has no addresses."""

from collections.abc import Sequence
from typing import Final

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.groups import PODS, SERVICES, GroupResource
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_SERVICE_NAME

from .commands import kubectl
from .explanation import Evidence, Explanation, Remedy, no_problem, unknown
from .facts import Facts
from .members import explain_first, is_terminal, related_of
from .records import find_events

SLICES: Final = GroupResource("discovery.k8s.io", "endpointslices")


def explain_service(service: ReadOnlyTree, facts: Facts) -> Explanation:
    spec, namespace = service["spec"], meta.namespace(service)
    if spec.get("type") == "ExternalName":
        return no_problem(f"it is an alias of {spec.get('externalName')}, and has no addresses of its own")
    slices = [
        each
        for each in facts.list(SLICES, namespace)
        if meta.labels(each).get(LABEL_SERVICE_NAME) == meta.name(service)
    ]
    addresses = sum(
        len(endpoint.get("addresses") or ())
        for each in slices
        for endpoint in each.get("endpoints") or ()
        if (endpoint.get("conditions") or {}).get("ready") is not False
    )
    selector = spec.get("selector")
    if addresses:
        return _missing_port(service, _matching(service, facts)) or _reachable(service, addresses, facts)
    if not selector:
        return _without_selector(service, facts)
    if not facts.may_list(PODS, namespace):
        return unknown("its pods cannot be looked at without the right to list pods")
    return _selected(service, selector, facts)


def _reachable(service: ReadOnlyTree, addresses: int, facts: Facts) -> Explanation:
    ready = f"{addresses} ready address{'es' if addresses > 1 else ''}"
    count = Evidence(text=ready, source="EndpointSlices")
    balancer = (service.get("status") or {}).get("loadBalancer") or {}
    if service["spec"].get("type") == "LoadBalancer" and not balancer.get("ingress"):
        failures = find_events(service, facts, ("SyncLoadBalancerFailed",), limit=1)
        if failures:
            return Explanation(
                cause=f"it has addresses, but no load balancer: {failures[0].text}",
                evidence=[*failures, count],
            )
        return unknown(
            "it has addresses, but no load balancer: a cloud's controller sets status.loadBalancer, and has not",
            count,
        )
    return no_problem(f"it has {ready}", count)


def _without_selector(service: ReadOnlyTree, facts: Facts) -> Explanation:
    if not facts.may_list(SLICES, meta.namespace(service)):
        return unknown("it has no selector, and its EndpointSlices you may not list")
    return Explanation(
        cause="it has no selector, so nobody writes addresses for it but its owner, who has not",
        evidence=[Evidence(text="spec.selector is empty", source="spec.selector")],
        remedies=[Remedy(text="Set spec.selector, or create an EndpointSlice for it.")],
    )


def _selected(service: ReadOnlyTree, selector: ReadOnlyTree, facts: Facts) -> Explanation:
    selector_text = ",".join(f"{key}={value}" for key, value in selector.items())
    source = Evidence(text=selector_text, source="spec.selector")
    matching = _matching(service, facts)
    if not matching:
        pods = facts.list(PODS, meta.namespace(service))
        return _none_matches(service, selector, [source], pods)
    unready = [pod for pod in matching if not conditions.is_true(pod, "Ready")]
    ready = len(matching) - len(unready)
    if ready and not facts.may_list(SLICES, meta.namespace(service)):
        return unknown(
            f"{ready} of its {len(matching)} pods are ready; its addresses are in EndpointSlices, which you may not list",
            source,
        )
    if ready:
        return _missing_port(service, matching) or _unwritten(ready, source)
    explained = explain_first(unready, facts)
    pod, first = explained[0]
    subject = "its pod is not" if len(matching) == 1 else f"none of its {len(matching)} pods is"
    return Explanation(
        state=first.state if first.state != "NoProblem" else "Unknown",
        cause=f"{subject} ready; {meta.name(pod)}: {first.cause}",
        evidence=[source, *first.evidence],
        nodes=first.nodes,
        remedies=first.remedies,
        origins=first.origins,
        related=related_of(explained),
    )


def _matching(service: ReadOnlyTree, facts: Facts) -> Sequence[ReadOnlyTree]:
    """Return the pods that the selector of a Service matches."""
    selector = service["spec"].get("selector") or {}
    pods = facts.list(PODS, meta.namespace(service)) if selector else ()
    return [pod for pod in pods if not is_terminal(pod) and _count_matches(selector, pod) == len(selector)]


def _count_matches(selector: ReadOnlyTree, pod: ReadOnlyTree) -> int:
    labels = meta.labels(pod)
    return sum(labels.get(key) == value for key, value in selector.items())


def _none_matches(
    service: ReadOnlyTree, selector: ReadOnlyTree, evidence: Sequence[Evidence], pods: Sequence[ReadOnlyTree]
) -> Explanation:
    name, namespace = meta.name(service), meta.namespace(service)
    nearest = max(pods, key=lambda pod: _count_matches(selector, pod), default=None)
    found = [*evidence]
    if nearest is not None and (len(selector) == 1 or _count_matches(selector, nearest)):
        labels = ",".join(f"{key}={value}" for key, value in meta.labels(nearest).items())
        found.append(
            Evidence(
                text=f"the pod {meta.name(nearest)} has {labels or 'no labels'}", source="metadata.labels"
            )
        )
    return Explanation(
        cause=f"no pod in {namespace} has the labels of its selector",
        evidence=found,
        remedies=[
            Remedy(
                text="The labels of the pods:",
                command=kubectl("get", "pods", "--show-labels", namespace=namespace),
            ),
            Remedy(
                text="Change the selector:",
                command=kubectl("set", "selector", "service", name, "KEY=VALUE", namespace=namespace),
            ),
        ],
    )


def _missing_port(service: ReadOnlyTree, pods: Sequence[ReadOnlyTree]) -> Explanation | None:
    """Explain a Service whose targetPort is a name that no container of its pods has."""
    targets = [
        port["targetPort"]
        for port in service["spec"].get("ports") or ()
        if isinstance(port.get("targetPort"), str)
    ]
    names = {
        port.get("name")
        for pod in pods
        for container in (*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ()))
        for port in container.get("ports") or ()
    }
    missing = [target for target in targets if pods and target not in names]
    if not missing:
        return None
    return Explanation(
        cause=f"no container of its pods has a port named {missing[0]}, which is its targetPort",
        evidence=[Evidence(text=f"targetPort is {missing[0]}", source="spec.ports")],
        remedies=[
            Remedy(text=f"Name a port of a container {missing[0]}, or set a number as the targetPort.")
        ],
    )


def _unwritten(count: int, source: Evidence) -> Explanation:
    return unknown(
        f"{count} ready pods have the labels of its selector, and it has no addresses: the controller of EndpointSlices "
        "does not run, or has not finished",
        source,
    )


def explain_slice(endpoint_slice: ReadOnlyTree, facts: Facts) -> Explanation:
    name = meta.labels(endpoint_slice).get(LABEL_SERVICE_NAME)
    namespace = meta.namespace(endpoint_slice)
    if not name:
        return unknown(f"it belongs to no Service: it has no label {LABEL_SERVICE_NAME}")
    if facts.is_missing(SERVICES, namespace, name):
        return Explanation(
            cause=f"the Service {name} does not exist",
            evidence=[Evidence(text=f"{LABEL_SERVICE_NAME}={name}", source="metadata.labels")],
        )
    service = facts.find(SERVICES, namespace, name)
    if service is None:
        return unknown(f"it belongs to the Service {name}, which you may not read")
    return explain_service(service, facts)
