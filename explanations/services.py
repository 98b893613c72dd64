"""Why a Service, or an EndpointSlice of it, has no addresses."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.groups import PODS, SERVICES, GroupResource
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.wellknown import LABEL_SERVICE_NAME

from .assumptions import assumed_evidence, assumed_remedies, assumed_text
from .commands import kubectl
from .explanation import Evidence, Explanation, ObjectName, Origin, Related, Remedy, no_problem, unknown
from .facts import Facts
from .members import MAX_EXPLAINED, explain_first, is_terminal, related_of
from .nearest import nearest
from .owners import DAEMON_SETS, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, template_origin
from .records import find_events
from .remedies import MERGE, patched, selecting
from .workloads import (
    explain_daemon_set,
    explain_deployment,
    explain_replica_set,
    explain_stateful_set,
)

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
        pods = _matching(service, facts)
        return (
            _missing_port(service, pods, facts)
            or _undeclared_port(service, pods, facts)
            or _reachable(service, addresses, facts)
        )
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
    pods = [pod for pod in _matching(service, facts) if conditions.is_true(pod, "Ready")]
    return Explanation(
        state="NoProblem",
        cause=f"it has {ready}{assumed_text(pods)}",
        evidence=[count, *[*assumed_evidence(pods)][:MAX_EXPLAINED]],
        remedies=[*assumed_remedies(pods)],
    )


def _without_selector(service: ReadOnlyTree, facts: Facts) -> Explanation:
    if not facts.may_list(SLICES, meta.namespace(service)):
        return unknown("it has no selector, and its EndpointSlices you may not list")
    return Explanation(
        cause="it has no selector, so nobody writes addresses for it but its owner, who has not",
        evidence=[Evidence(text="spec.selector is empty", source="spec.selector")],
        remedies=[Remedy(text="Set spec.selector, or create an EndpointSlice for it.")],
        origins=[Origin.of(service, "spec", "selector")],
    )


def _selected(service: ReadOnlyTree, selector: ReadOnlyTree, facts: Facts) -> Explanation:
    selector_text = ",".join(f"{key}={value}" for key, value in selector.items())
    source = Evidence(text=selector_text, source="spec.selector")
    matching = _matching(service, facts)
    if not matching:
        return _none_matches(service, selector, source, facts)
    unready = [pod for pod in matching if not conditions.is_true(pod, "Ready")]
    ready = len(matching) - len(unready)
    if ready and not facts.may_list(SLICES, meta.namespace(service)):
        return unknown(
            f"{ready} of its {len(matching)} pods are ready; its addresses are in EndpointSlices, which you may not list",
            source,
        )
    if ready:
        return _missing_port(service, matching, facts) or _unwritten(ready, source)
    explained = explain_first(unready, facts)
    pod, first = explained[0]
    subject = "its pod is not" if len(matching) == 1 else f"none of its {len(matching)} pods is"
    port = _missing_port(service, matching, facts) or _undeclared_port(service, matching, facts)
    return Explanation(
        state=first.state if first.state != "NoProblem" else "Unknown",
        cause=f"{subject} ready; {meta.name(pod)}: {first.cause}{f'; also, {port.cause}' if port else ''}",
        evidence=[source, *first.evidence, *(port.evidence if port else ())],
        nodes=first.nodes,
        remedies=[*first.remedies, *(port.remedies if port else ())],
        origins=[*first.origins, *(port.origins if port else ())],
        related=related_of(explained),
    )


def _matching(service: ReadOnlyTree, facts: Facts) -> Sequence[ReadOnlyTree]:
    """Return the pods that the selector of a Service matches."""
    selector = service["spec"].get("selector") or {}
    pods = facts.list(PODS, meta.namespace(service)) if selector else ()
    return [pod for pod in pods if not is_terminal(pod) and _matches(selector, meta.labels(pod))]


def _matches(selector: ReadOnlyTree, labels: ReadOnlyTree) -> bool:
    return all(labels.get(key) == value for key, value in selector.items())


def _none_matches(
    service: ReadOnlyTree, selector: ReadOnlyTree, source: Evidence, facts: Facts
) -> Explanation:
    """Explain a Service that selects no pod: of what has pods with these labels, else by the labels that are nearest."""
    namespace = meta.namespace(service)
    cause = f"no pod in {namespace} has the labels of its selector"
    workloads = [*_workloads(namespace, facts)]
    for explain, workload in workloads:
        if _matches(selector, _template_labels(workload)):
            found = explain(workload, facts)
            return replace(
                found,
                state="Explained" if found.state == "NoProblem" else found.state,
                cause=f"{_name(workload)}, whose pods it selects, has none: {found.cause}",
                evidence=[source, *found.evidence],
                related=[Related(object=ObjectName.of(workload), cause=found.cause), *found.related],
            )
    pods = [pod for pod in facts.list(PODS, namespace) if not is_terminal(pod)]
    candidates = [(each, _template_labels(each)) for _, each in workloads]
    candidates += [(pod, meta.labels(pod)) for pod in pods if meta.controller_of(pod) is None]
    candidate = max(candidates, key=lambda each: _likeness(service, each), default=None)
    with_keys = [each for each in candidates if selector.keys() & each[1].keys()]
    if candidate is not None and not any(_likeness(service, candidate)[:2]):
        candidate = with_keys[0] if len(with_keys) == 1 else None
    if candidate is None:
        return Explanation(
            cause=cause,
            evidence=[source],
            remedies=[
                Remedy(
                    text="The labels of the pods:",
                    command=kubectl("get", "pods", "--show-labels", namespace=namespace),
                )
            ],
            origins=[Origin.of(service, "spec", "selector")],
        )
    return _other_labels(service, selector, candidate, [source])


def _other_labels(
    service: ReadOnlyTree,
    selector: ReadOnlyTree,
    nearest: tuple[ReadOnlyTree, ReadOnlyTree],
    evidence: Sequence[Evidence],
) -> Explanation:
    """Explain a Service by the labels that differ from those of what is nearest to it."""
    workload, labels = nearest
    differing = [key for key, value in selector.items() if labels.get(key) != value]
    texts = [
        f"it has {key}={labels[key]}, not {key}={selector[key]}"
        if key in labels
        else f"it has no label {key}"
        for key in differing
    ]
    path = ("metadata", "labels") if meta.kind(workload) == "Pod" else (*_TEMPLATE_LABELS,)
    own = {key: labels[key] for key in selector if key in labels}
    remedies = [selecting(f"Select the pods of {_name(workload)}:", service, own)] if own else []
    return Explanation(
        cause=f"no pod in {meta.namespace(service)} has the labels of its selector; nearest is {_name(workload)}: {'; '.join(texts)}",
        evidence=[
            *evidence,
            Evidence(
                text=",".join(f"{key}={value}" for key, value in labels.items()) or "no labels",
                source=f"labels of {_name(workload)}",
            ),
        ],
        remedies=remedies,
        origins=[
            *(Origin.of(service, "spec", "selector", key) for key in differing),
            *(Origin.of(workload, *path, key) for key in differing),
        ],
    )


_TEMPLATE_LABELS: Final = ("spec", "template", "metadata", "labels")
_EXPLAINERS: Final[Mapping[GroupResource, Callable[[ReadOnlyTree, Facts], Explanation]]] = {
    DEPLOYMENTS: explain_deployment,
    STATEFUL_SETS: explain_stateful_set,
    DAEMON_SETS: explain_daemon_set,
    REPLICA_SETS: explain_replica_set,
}
"""The workloads whose pods a Service may select."""


def _workloads(
    namespace: str, facts: Facts
) -> Iterator[tuple[Callable[[ReadOnlyTree, Facts], Explanation], ReadOnlyTree]]:
    for resource, explain in _EXPLAINERS.items():
        for workload in facts.list(resource, namespace):
            if meta.controller_of(workload) is None:
                yield explain, workload


def _template_labels(workload: ReadOnlyTree) -> ReadOnlyTree:
    return (workload["spec"]["template"].get("metadata") or {}).get("labels") or {}


def _name(obj: ReadOnlyTree) -> str:
    return str(ObjectName.of(obj))


def _likeness(
    service: ReadOnlyTree, candidate: tuple[ReadOnlyTree, ReadOnlyTree]
) -> tuple[int, int, bool, bool]:
    """Return how many labels are as a Service selects them, how many are much like these, and whether its name and a port are the same.

    A name that is much like that of the Service counts as such a label.
    """
    obj, labels = candidate
    selector = service["spec"].get("selector") or {}
    equal = sum(labels.get(key) == value for key, value in selector.items())
    alike = sum(bool(nearest(value, [labels[key]])) for key, value in selector.items() if key in labels)
    same_name = bool(nearest(meta.name(service), [meta.name(obj)]))
    spec = obj["spec"].get("template", {}).get("spec") or obj["spec"]
    declared = {
        value
        for container in spec.get("containers") or ()
        for port in container.get("ports") or ()
        for value in (port["containerPort"], port.get("name"))
    }
    targets = {port.get("targetPort") for port in service["spec"].get("ports") or ()}
    return equal, alike + same_name, meta.name(service) == meta.name(obj), bool(targets & declared)


def _missing_port(service: ReadOnlyTree, pods: Sequence[ReadOnlyTree], facts: Facts) -> Explanation | None:
    """Explain a Service whose targetPort is a name that no container of its pods has."""
    targets = [
        port["targetPort"]
        for port in service["spec"].get("ports") or ()
        if isinstance(port.get("targetPort"), str)
    ]
    names = {port.get("name") for container in _containers(pods) for port in container.get("ports") or ()}
    missing = [target for target in targets if pods and target not in names]
    if not missing:
        return None
    return Explanation(
        cause=f"no container of its pods has a port named {missing[0]}, which is its targetPort",
        evidence=[Evidence(text=f"targetPort is {missing[0]}", source="spec.ports")],
        remedies=[
            *_named_ports(service, missing[0], pods),
            Remedy(text=f"Or name a port of a container {missing[0]}."),
        ],
        origins=[Origin.of(service, "spec", "ports"), template_origin(pods[0], facts, "containers")],
    )


def _containers(pods: Sequence[ReadOnlyTree]) -> Iterator[ReadOnlyTree]:
    """Yield the containers of pods that can have a port of a Service: also sidecars."""
    for pod in pods:
        yield from pod["spec"]["containers"]
        for container in pod["spec"].get("initContainers") or ():
            if container.get("restartPolicy") == "Always":
                yield container


def _undeclared_port(service: ReadOnlyTree, pods: Sequence[ReadOnlyTree], facts: Facts) -> Explanation | None:
    """Say of a Service without a port that its pods declare, although all of their containers declare some: nobody may listen there."""
    containers = [*_containers(pods)]
    targets = [port.get("targetPort") for port in service["spec"].get("ports") or ()]
    numbers = {port["containerPort"] for each in containers for port in each.get("ports") or ()}
    declares_all = all(each.get("ports") for each in containers)
    if not (targets and containers and declares_all) or any(
        isinstance(target, str) or target in numbers for target in targets
    ):
        return None
    declared = ", ".join(map(str, sorted(numbers)))
    return Explanation(
        state="Unknown",
        cause=f"no container of its pods declares the port {targets[0]}, which is its targetPort: if no program listens there, "
        "connections are refused",
        evidence=[
            Evidence(text=f"targetPort is {targets[0]}", source="spec.ports"),
            Evidence(text=f"containerPort is {declared}", source="spec.containers of the pods"),
        ],
        remedies=[*_named_ports(service, targets[0], pods)],
        origins=[Origin.of(service, "spec", "ports"), template_origin(pods[0], facts, "containers")],
    )


def _named_ports(
    service: ReadOnlyTree, target: str | int | None, pods: Sequence[ReadOnlyTree]
) -> Iterator[Remedy]:
    """Yield the change of a targetPort to the first port of the pods."""
    ports = [port for container in pods[0]["spec"]["containers"] for port in container.get("ports") or ()]
    if ports:
        value = ports[0].get("name") or ports[0]["containerPort"]
        changed = [
            {**port, "targetPort": value} if port.get("targetPort") == target else port
            for port in service["spec"]["ports"]
        ]
        yield patched(
            f"Lead to the port {value} of the pods:", service, {"spec": {"ports": changed}}, media_type=MERGE
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
            origins=[Origin.named("v1", "Service", namespace, name)],
        )
    service = facts.find(SERVICES, namespace, name)
    if service is None:
        return unknown(f"it belongs to the Service {name}, which you may not read")
    return explain_service(service, facts)
