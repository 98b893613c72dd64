"""Which HTTPRoutes are attached to which listeners of Gateways, and the status of both. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct

from mockube.apimachinery import conditions, labels, meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.resources import Key
from mockube.network.ingress import Backend

from .gateway_kinds import GROUP
from .gateway_routing import BackendChoice, RouteMatch, matches_of, shared_host

_PROTOCOLS: Final = ("HTTP", "HTTPS")
_KIND: Final = {"group": GROUP, "kind": "HTTPRoute"}
_RESOLVED: Final = "ResolvedRefs"
_MESSAGES: Final = {
    "NoMatchingParent": "the Gateway has no listener with the sectionName and port of the reference",
    "NotAllowedByListeners": "no listener allows HTTPRoutes of this namespace: its allowedRoutes or protocol exclude them",
    "NoMatchingListenerHostname": "no hostname of the route is one of the listeners",
    "UnsupportedProtocol": "only listeners with the protocol HTTP or HTTPS are served",
}
"""What reasons of conditions mean."""


class ReferenceProblem(NamedTuple):
    """Why a reference to a Secret or a Service is not followed."""

    reason: str
    message: str


class Cluster(Struct, frozen=True, kw_only=True):
    """The objects that references of routes and Gateways lead to."""

    namespace_labels: Callable[[str], Mapping[str, str] | None]
    service: Callable[[str, str], ReadOnlyTree | None]
    grants: Sequence[ReadOnlyTree]
    """The ReferenceGrants."""


class Parent(Struct, frozen=True, kw_only=True):
    """What a reference of a route to a Gateway leads to."""

    reference: ReadOnlyTree
    reason: str
    """Accepted, or why it is not."""
    backends_problem: ReferenceProblem | None
    """What is wrong with the first backend that is not found."""
    listeners: Sequence[str]
    """The names of the listeners to which the route is attached."""
    matches: Sequence[RouteMatch] = ()


def parents_of(
    route: ReadOnlyTree, gateways: Callable[[str, str], ReadOnlyTree | None], cluster: Cluster
) -> Iterator[Parent]:
    """Yield what becomes of each reference of a route to a Gateway that is served."""
    namespace, spec = meta.namespace(route), route.get("spec") or {}
    declared: Sequence[ReadOnlyTree] = spec.get("rules") or ({},)
    rules = [(rule, [*_backends(route, rule, cluster)]) for rule in declared]
    problems = (problem for _, backends in rules for _, problem in backends if problem is not None)
    first_problem = next(problems, None)
    for reference in spec.get("parentRefs") or ():
        if reference.get("group", GROUP) != GROUP or reference.get("kind", "Gateway") != "Gateway":
            continue
        gateway = gateways(reference.get("namespace") or namespace, reference["name"])
        if gateway is None:
            continue
        reason, attached = _attach(route, reference, gateway, cluster)
        matches = [
            RouteMatch(
                route=route,
                host=host,
                is_secure=listener.get("protocol") == "HTTPS",
                listener=(meta.namespace(gateway), meta.name(gateway), listener["name"]),
                match=match,
                rule=rule,
                backends=[choice for choice, _ in backends],
            )
            for listener, host in attached
            for rule, backends in rules
            for match in matches_of(rule)
        ]
        yield Parent(
            reference=reference,
            reason=reason,
            backends_problem=first_problem,
            listeners=[*dict.fromkeys(listener["name"] for listener, _ in attached)],
            matches=matches,
        )


def _attach(
    route: ReadOnlyTree, reference: ReadOnlyTree, gateway: ReadOnlyTree, cluster: Cluster
) -> tuple[str, list[tuple[ReadOnlyTree, str]]]:
    """Return the reason of the condition Accepted, and the listeners with the hosts of the route there."""
    section, port = reference.get("sectionName"), reference.get("port")
    named = [
        listener
        for listener in (gateway.get("spec") or {}).get("listeners") or ()
        if section in (None, listener["name"]) and port in (None, listener["port"])
    ]
    if not named:
        return "NoMatchingParent", []
    allowed = [listener for listener in named if _allows(listener, route, gateway, cluster)]
    if not allowed:
        return "NotAllowedByListeners", []
    hosts = (route.get("spec") or {}).get("hostnames") or ("",)
    attached = [
        (listener, host)
        for listener in allowed
        for each in hosts
        if (host := shared_host(listener.get("hostname") or "", each)) is not None
    ]
    return ("Accepted", attached) if attached else ("NoMatchingListenerHostname", [])


def _allows(listener: ReadOnlyTree, route: ReadOnlyTree, gateway: ReadOnlyTree, cluster: Cluster) -> bool:
    allowed = listener.get("allowedRoutes") or {}
    kinds = allowed.get("kinds") or ()
    if listener.get("protocol") not in _PROTOCOLS or (
        kinds and not any(each.get("kind") == "HTTPRoute" for each in kinds)
    ):
        return False
    namespaces = allowed.get("namespaces") or {}
    match namespaces.get("from") or "Same":
        case "All":
            return True
        case "Selector":
            selector = labels.from_label_selector(namespaces.get("selector") or {})
            return selector.matches(cluster.namespace_labels(meta.namespace(route)) or {})
        case "None":
            return False
        case _:
            return meta.namespace(route) == meta.namespace(gateway)


def _backends(
    route: ReadOnlyTree, rule: ReadOnlyTree, cluster: Cluster
) -> Iterator[tuple[BackendChoice, ReferenceProblem | None]]:
    """Yield the backends of a rule, each with what is wrong with its reference."""
    for reference in rule.get("backendRefs") or ():
        backend, problem = _backend(route, reference, cluster)
        weight = reference.get("weight", 1)
        yield BackendChoice(backend=backend, weight=weight, filters=reference.get("filters") or ()), problem


def _backend(
    route: ReadOnlyTree, reference: ReadOnlyTree, cluster: Cluster
) -> tuple[Backend | None, ReferenceProblem | None]:
    if reference.get("group") or reference.get("kind", "Service") != "Service":
        kind = reference.get("kind", "Service")
        return None, ReferenceProblem(
            "InvalidKind", f"the backend {reference['name']} is a {kind}, and no Service"
        )
    namespace = reference.get("namespace") or meta.namespace(route)
    target = ("", "Service", namespace, reference["name"])
    if not is_granted((GROUP, "HTTPRoute", meta.namespace(route)), target, cluster.grants):
        return None, not_permitted("service", namespace, reference["name"])
    if cluster.service(namespace, reference["name"]) is None:
        return None, ReferenceProblem(
            "BackendNotFound", f'service "{namespace}/{reference["name"]}" does not exist'
        )
    return (namespace, reference["name"], reference.get("port") or 0), None


def not_permitted(kind: str, namespace: str, name: str) -> ReferenceProblem:
    message = (
        f'{kind} "{namespace}/{name}" is in another namespace, where no ReferenceGrant allows the reference'
    )
    return ReferenceProblem("RefNotPermitted", message)


def is_granted(
    source: tuple[str, str, str], target: tuple[str, str, str, str], grants: Iterable[ReadOnlyTree]
) -> bool:
    """Return whether an object may refer to one: it is in the same namespace, or a ReferenceGrant there allows it.

    `source` is group, kind and namespace; `target` group, kind, namespace and name.
    """
    group, kind, namespace = source
    to_group, to_kind, to_namespace, to_name = target
    if namespace == to_namespace:
        return True
    return any(
        meta.namespace(grant) == to_namespace
        and any(
            (each.get("group"), each.get("kind"), each.get("namespace")) == (group, kind, namespace)
            for each in (grant.get("spec") or {}).get("from") or ()
        )
        and any(
            (each.get("group") or "", each.get("kind")) == (to_group, to_kind)
            and each.get("name") in (None, "", to_name)
            for each in (grant.get("spec") or {}).get("to") or ()
        )
        for grant in grants
    )


# --- status


def _condition(  # noqa: PLR0913 - the fields of a condition
    present: Sequence[ReadOnlyTree],
    kind: str,
    reason: str,
    message: str,
    *,
    holds: bool,
    generation: int,
    now: str,
) -> dict[str, Any]:
    """Return a condition, with the time of its last transition."""
    status = "True" if holds else "False"
    old = next((each for each in present if each.get("type") == kind), {})
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": generation,
        "lastTransitionTime": old["lastTransitionTime"] if old.get("status") == status else now,
    }


def class_status(gateway_class: ReadOnlyTree, now: str) -> ReadOnlyTree:
    """Return the status of a GatewayClass that is served here: as it is if it is accepted in its present generation."""
    present, generation = gateway_class.get("status") or {}, meta.generation(gateway_class)
    is_accepted = {"type": "Accepted", "status": "True", "observedGeneration": generation}
    if conditions.has_condition(gateway_class, is_accepted):
        return present
    listed = conditions.of(gateway_class)
    message = "mockube serves its Gateways"
    accepted = _condition(listed, "Accepted", "Accepted", message, holds=True, generation=generation, now=now)
    return {**present, "conditions": [*conditions.without(listed, "Accepted"), accepted]}


def gateway_status(
    gateway: ReadOnlyTree,
    address: str,
    attached: Mapping[str, int],
    problems: Mapping[str, ReferenceProblem],
    now: str,
) -> dict[str, Any]:
    """Return the status of a Gateway. `attached` are the numbers of routes by listener, `problems` those of certificates by listener."""
    present, generation = gateway.get("status") or {}, meta.generation(gateway)
    old_listeners: dict[str, ReadOnlyTree] = {each["name"]: each for each in present.get("listeners") or ()}
    listeners = []
    for listener in (gateway.get("spec") or {}).get("listeners") or ():
        name = listener["name"]
        old = old_listeners[name].get("conditions") or () if name in old_listeners else ()
        is_known = listener.get("protocol") in _PROTOCOLS
        problem = problems.get(name)
        is_served = is_known and problem is None
        reason = "Accepted" if is_known else "UnsupportedProtocol"
        message = problem.message if problem is not None else _MESSAGES.get(reason, "")
        facts = (
            ("Accepted", reason, _MESSAGES.get(reason, ""), is_known),
            ("Conflicted", "NoConflicts", "", False),
            ("Programmed", "Programmed" if is_served else "Invalid", message, is_served),
            (_RESOLVED, *(problem or (_RESOLVED, "")), problem is None),
        )
        listeners.append(
            {
                "name": name,
                "supportedKinds": [_KIND] if is_known else [],
                "attachedRoutes": attached.get(name, 0),
                "conditions": [
                    _condition(old, kind, reason, message, holds=holds, generation=generation, now=now)
                    for kind, reason, message, holds in facts
                ],
            }
        )
    old = present.get("conditions") or ()
    served = f"mockube serves it at {address}"
    return {
        "addresses": [{"type": "IPAddress", "value": address}],
        "conditions": [
            _condition(old, kind, kind, served, holds=True, generation=generation, now=now)
            for kind in ("Accepted", "Programmed")
        ],
        "listeners": listeners,
    }


def _conditions_of(parents: Sequence[ReadOnlyTree], reference: ReadOnlyTree) -> Sequence[ReadOnlyTree]:
    """Return the conditions of a route's parent in its status."""
    return next((each.get("conditions") or () for each in parents if each.get("parentRef") == reference), ())


def route_status(
    route: ReadOnlyTree, parents: Sequence[Parent], controllers: Callable[[Key], str], now: str
) -> dict[str, Any]:
    """Return the status of a route: its parents here, beside those of other controllers."""
    generation, namespace = meta.generation(route), meta.namespace(route)
    present = (route.get("status") or {}).get("parents") or ()
    own = []
    for parent in parents:
        reference = parent.reference
        controller = controllers(Key(reference.get("namespace") or namespace, reference["name"]))
        old = _conditions_of(present, reference)
        problem = parent.backends_problem
        facts = (
            ("Accepted", parent.reason, _MESSAGES.get(parent.reason, ""), parent.reason == "Accepted"),
            (_RESOLVED, *(problem or (_RESOLVED, "")), problem is None),
        )
        own.append(
            {
                "parentRef": reference,
                "controllerName": controller,
                "conditions": [
                    _condition(old, kind, reason, message, holds=holds, generation=generation, now=now)
                    for kind, reason, message, holds in facts
                ],
            }
        )
    references = [each["parentRef"] for each in own]
    others = [each for each in present if each.get("parentRef") not in references]
    return {"parents": [*others, *own]}
