"""Why a Gateway serves nothing, and why a route leads nowhere: the class, what conditions say, and the Services behind a route."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.groups import GroupResource
from mockube.apimachinery.tree import ReadOnlyTree

from .backends import backend_problem
from .commands import kubectl
from .explanation import Evidence, Explanation, ObjectName, Origin, Related, Remedy, no_problem, unknown
from .facts import Facts
from .records import condition_evidence
from .remedies import MERGE, patched

GROUP: Final = "gateway.networking.k8s.io"
GATEWAYS: Final = GroupResource(GROUP, "gateways")
CLASSES: Final = GroupResource(GROUP, "gatewayclasses")
ROUTES: Final = tuple(
    GroupResource(GROUP, name) for name in ("httproutes", "grpcroutes", "tlsroutes", "tcproutes", "udproutes")
)


def explain_gateway(gateway: ReadOnlyTree, facts: Facts) -> Explanation:
    if conditions.status(gateway, "Accepted") == "Unknown":
        return _not_accepted(gateway, facts)
    problem = _failed(conditions.of(gateway), "it")
    if problem is not None:
        return problem
    listeners = (gateway.get("status") or {}).get("listeners") or ()
    for listener in listeners:
        problem = _failed(listener.get("conditions") or (), f"its listener {listener['name']}")
        if problem is not None:
            return problem
    evidence = [*map(condition_evidence, conditions.of(gateway))]
    if not any(listener.get("attachedRoutes") for listener in listeners):
        return Explanation(
            cause="no route is attached to it, so that each request gets 404",
            evidence=evidence,
            remedies=[
                Remedy(text="The routes, and their parents:", command=kubectl("get", "httproutes", "-A"))
            ],
        )
    return no_problem("its listeners are programmed, and have routes", *evidence)


def explain_gateway_class(gateway_class: ReadOnlyTree, _: Facts) -> Explanation:
    controller = _controller(gateway_class)
    evidence = [*map(condition_evidence, conditions.of(gateway_class))]
    if conditions.is_true(gateway_class, "Accepted"):
        return no_problem(f"{controller} has accepted it", *evidence)
    problem = _failed(conditions.of(gateway_class), "it")
    return problem or unknown(
        f"no program has accepted it: none of {controller} runs, or it is busy", *evidence
    )


def _controller(gateway_class: ReadOnlyTree) -> str:
    return f"the controller {gateway_class['spec'].get('controllerName')}"


def _not_accepted(gateway: ReadOnlyTree, facts: Facts) -> Explanation:
    """Explain a Gateway that no controller serves."""
    name = gateway["spec"].get("gatewayClassName") or ""
    if facts.is_missing(CLASSES, "", name):
        return Explanation(
            cause=f"there is no GatewayClass {name}, so that no controller serves it",
            evidence=[Evidence(text=f"gatewayClassName is {name}", source="spec")],
            remedies=[
                *(
                    patched(
                        "Name one that exists:",
                        gateway,
                        {"spec": {"gatewayClassName": meta.name(each)}},
                        media_type=MERGE,
                    )
                    for each in facts.list(CLASSES)[:1]
                ),
                Remedy(text="The classes:", command=kubectl("get", "gatewayclasses")),
            ],
            origins=[
                Origin.of(gateway, "spec", "gatewayClassName"),
                Origin.named(meta.api_version(gateway), "GatewayClass", "", name),
            ],
        )
    gateway_class = facts.find(CLASSES, "", name)
    owner = f"the class {name}" if gateway_class is None else _controller(gateway_class)
    return unknown(
        f"no program has accepted it: none of {owner} runs, or it is busy",
        *map(condition_evidence, conditions.of(gateway)),
    )


def explain_route(route: ReadOnlyTree, facts: Facts) -> Explanation:
    parents = [*_parents(route)]
    if not parents:
        return Explanation(
            cause="it names no Gateway as its parent, so that nothing uses it",
            remedies=[*_attached(route, facts), Remedy(text="Set spec.parentRefs to a Gateway.")],
            origins=[Origin.of(route, "spec", "parentRefs")],
        )
    for reference in parents:
        problem = _parent_problem(route, reference, facts)
        if problem is not None:
            return problem
    for namespace, backend in _backends(route):
        reference = {"name": backend["name"], "port": {"number": backend.get("port")}}
        problem = backend_problem(route, "the route", namespace, reference, facts)
        if problem is not None:
            return problem
    return no_problem(
        "its Gateways accept it, and its Services have ready addresses",
        *(condition_evidence(each) for parent in _statuses(route) for each in parent.get("conditions") or ()),
    )


def _attached(route: ReadOnlyTree, facts: Facts) -> Iterator[Remedy]:
    """Yield the change of a route that has one parent at most to a Gateway of its namespace."""
    for gateway in facts.list(GATEWAYS, meta.namespace(route))[:1]:
        patch = {"spec": {"parentRefs": [{"name": meta.name(gateway)}]}}
        if len(route["spec"].get("parentRefs") or ()) <= 1:
            text = f"Attach it to the Gateway {meta.name(gateway)}:"
            yield patched(text, route, patch, media_type=MERGE)


def _parents(route: ReadOnlyTree) -> Iterator[dict[str, Any]]:
    """Yield the references to Gateways, with their namespaces."""
    for reference in route["spec"].get("parentRefs") or ():
        if reference.get("kind") in (None, "Gateway"):
            yield {**reference, "namespace": reference.get("namespace") or meta.namespace(route)}


def _statuses(route: ReadOnlyTree) -> Sequence[ReadOnlyTree]:
    return (route.get("status") or {}).get("parents") or ()


def _parent_problem(route: ReadOnlyTree, reference: ReadOnlyTree, facts: Facts) -> Explanation | None:
    """Explain why a Gateway does not serve a route."""
    namespace, name = reference["namespace"], reference["name"]
    if facts.is_missing(GATEWAYS, namespace, name):
        return Explanation(
            cause=f"there is no Gateway {name} in {namespace}, to which it would be attached",
            evidence=[Evidence(text=f"parentRefs names {name}", source="spec")],
            remedies=[
                *_attached(route, facts),
                Remedy(text="The Gateways:", command=kubectl("get", "gateways", "-A")),
            ],
            origins=[
                Origin.of(route, "spec", "parentRefs"),
                Origin.named(meta.api_version(route), "Gateway", namespace, name),
            ],
        )
    found = [
        condition
        for status in _statuses(route)
        if _is_of(status["parentRef"], reference, meta.namespace(route))
        for condition in status.get("conditions") or ()
    ]
    if found:
        return _failed(found, f"on the Gateway {name}, it")
    gateway = facts.find(GATEWAYS, namespace, name)
    if gateway is None:
        return unknown(f"its parent is the Gateway {name}, which you may not read")
    explanation = explain_gateway(gateway, facts)
    if explanation.state == "NoProblem":
        return unknown(f"the controller of the Gateway {name} has not looked at it yet, or ignores its kind")
    return replace(
        explanation,
        cause=f"the Gateway {name}, to which it is attached, does not serve: {explanation.cause}",
        related=[Related(object=ObjectName.of(gateway), cause=explanation.cause)],
    )


def _is_of(reported: ReadOnlyTree, reference: ReadOnlyTree, namespace: str) -> bool:
    """Return whether a status is about a reference to a parent."""
    fields = ("name", "sectionName", "port")
    is_same = all(reported.get(field) == reference.get(field) for field in fields)
    return is_same and (reported.get("namespace") or namespace) == reference["namespace"]


def _backends(route: ReadOnlyTree) -> Iterator[tuple[str, ReadOnlyTree]]:
    for rule in route["spec"].get("rules") or ():
        for backend in rule.get("backendRefs") or ():
            if backend.get("kind") in (None, "Service") and not backend.get("group"):
                yield backend.get("namespace") or meta.namespace(route), backend


_GOOD: Final = {"Accepted": "True", "Conflicted": "False", "ResolvedRefs": "True", "Programmed": "True"}
"""The conditions of the Gateway API, the first cause first, and their status while all is well."""
_BAD: Final = {"True": "False", "False": "True"}


def _failed(found: Sequence[ReadOnlyTree], subject: str) -> Explanation | None:
    """Explain by the first condition that says that something is wrong."""
    for name, good in _GOOD.items():
        condition = conditions.find(found, name)
        if condition is not None and condition["status"] == _BAD[good]:
            return Explanation(
                cause=f"{subject} has the condition {name}={_BAD[good]}, {condition.get('reason')}: {condition.get('message') or 'no message'}",
                evidence=[*map(condition_evidence, found)],
            )
    return None
