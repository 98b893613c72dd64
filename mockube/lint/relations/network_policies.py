"""NetworkPolicies against the Services whose requests they refuse. Pure."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from mockube.apimachinery.groups import GroupKind
from mockube.lint.findings import Outcome
from mockube.lint.objects import LintObject

from .addresses import Address, addresses
from .fields import (
    IngressFields,
    PolicyFields,
    PolicyPeer,
    PolicyPort,
    PolicyRule,
    ServiceFields,
    ServicePort,
)
from .object_set import INGRESS, SERVICE, ObjectSet, PodTemplate, selector_of
from .problem import Problem
from .selections import misspelt_pods, selector_problem
from .services import selected_pods

_POLICY: Final = GroupKind("networking.k8s.io", "NetworkPolicy")
_INGRESS, _EGRESS = "Ingress", "Egress"
_DNS_PORT: Final = 53
_OUTSIDE_TYPES: Final = ("NodePort", "LoadBalancer")


class Policy(NamedTuple):
    item: LintObject
    fields: PolicyFields

    def rules(self, direction: str) -> Sequence[PolicyRule]:
        return self.fields.spec.ingress if direction == _INGRESS else self.fields.spec.egress

    def applies(self, objects: ObjectSet, pod: PodTemplate, direction: str) -> bool:
        """Return whether the policy selects pods and is one of a direction; without types, it is one of Ingress."""
        spec = self.fields.spec
        types = spec.policy_types or (_INGRESS, *([_EGRESS] if spec.egress else []))
        selector = selector_of(spec.pod_selector)
        return (
            direction in types
            and objects.namespace_of(self.item) == pod.namespace
            and selector is not None
            and pod.is_selected(selector)
        )


def policy_selectors(objects: ObjectSet) -> Iterator[Problem]:
    """Find policies that select no pods although the files show which were meant."""
    for item, policy in objects.decoded(PolicyFields, _POLICY):
        yield from selector_problem(objects, item, selector_of(policy.spec.pod_selector), "spec.podSelector")


def policy_peers(objects: ObjectSet) -> Iterator[Problem]:
    """Find peers of a policy's own namespace that misspell the labels of pods."""
    for item, policy in objects.decoded(PolicyFields, _POLICY):
        here = objects.pods.get(objects.namespace_of(item), ())
        for field, peer in _peers(policy):
            selector = selector_of(peer.pod_selector)
            if peer.namespace_selector is None and selector is not None and not selector.matches_nothing:
                for pod in [*misspelt_pods(selector, here)][:1]:
                    labels = ", ".join(f"{key}={value}" for key, value in pod.labels.items())
                    message = f"no pods of the files have {selector}: those of {pod.item.title} have {labels}"
                    yield Problem(item=item, field=f"{field}.podSelector", message=message)


def _peers(policy: PolicyFields) -> Iterator[tuple[str, PolicyPeer]]:
    for name, rules in (("ingress", policy.spec.ingress), ("egress", policy.spec.egress)):
        for i, rule in enumerate(rules):
            for side, peers in (("from", rule.peers_from), ("to", rule.peers_to)):
                for j, peer in enumerate(peers):
                    yield f"spec.{name}[{i}].{side}[{j}]", peer


def refused_clients(objects: ObjectSet) -> Iterator[Problem]:
    """Find pods with the address of a Service to which policies do not let them send."""
    policies = [Policy(*found) for found in objects.decoded(PolicyFields, _POLICY)]
    for address in addresses(objects) if policies else ():
        ports = [port for port in address.fields.spec.ports if port.port == address.port]
        for port in ports[:1]:
            for pod in selected_pods(objects, address.service, address.fields):
                if _numbers(port.target, port.protocol, pod):
                    yield from _refused_client(objects, policies, address, pod, port)


def _refused_client(
    objects: ObjectSet, policies: Sequence[Policy], address: Address, pod: PodTemplate, port: ServicePort
) -> Iterator[Problem]:
    """Yield the policies of a client or of the pods of a Service that refuse the requests between them."""
    client, title = address.pod, address.service.title
    words = f"the pods of {client.item.title} may not send to port {port.target} of {title}"
    for direction, own, other in ((_INGRESS, pod, client), (_EGRESS, client, pod)):
        applying = [each for each in policies if each.applies(objects, own, direction)]
        rules = [rule for policy in applying for rule in policy.rules(direction)]
        if rules and not any(
            _admits(rule, pod, port) and _has_peer(_peers_of(rule, direction), own, other) for rule in rules
        ):
            message = f"{words}, whose address they have"
            yield Problem(item=applying[0].item, field=f"spec.{direction.lower()}", message=message)


def _peers_of(rule: PolicyRule, direction: str) -> Sequence[PolicyPeer]:
    return rule.peers_from if direction == _INGRESS else rule.peers_to


def _has_peer(peers: Sequence[PolicyPeer], own: PodTemplate, other: PodTemplate) -> bool:
    """Return whether pods are among peers; labels of namespaces and addresses of pods are not known."""
    return not peers or any(
        peer.ip_block is not None
        or (
            (peer.namespace_selector is not None or own.namespace == other.namespace)
            and (peer.pod_selector is None or _matches(peer, other))
        )
        for peer in peers
    )


def _matches(peer: PolicyPeer, pod: PodTemplate) -> bool:
    selector = selector_of(peer.pod_selector)
    return selector is None or pod.is_selected(selector)


def refused_ports(objects: ObjectSet) -> Iterator[Problem]:
    """Find ports to which a Service sends, and which no rule of the policies of its pods admits."""
    policies = [Policy(*found) for found in objects.decoded(PolicyFields, _POLICY)]
    outside = _requested_from_outside(objects) if policies else set()
    for item, service in objects.decoded(ServiceFields, SERVICE) if policies else ():
        for pod in selected_pods(objects, item, service):
            applying = [each for each in policies if each.applies(objects, pod, _INGRESS)]
            rules = [rule for policy in applying for rule in policy.fields.spec.ingress]
            if not rules:
                continue  # no policy, or one that isolates the pods on purpose
            for port in service.spec.ports:
                if not _numbers(port.target, port.protocol, pod):
                    continue  # the Service sends nothing for this port to pods without a port of its name
                admitting = [rule for rule in rules if _admits(rule, pod, port)]
                reason = ""
                if not admitting:
                    reason = f"no rule admits port {port.target} ({port.protocol}) of {pod.item.title}, to which {item.title} sends"
                elif _is_outside(item, service, outside) and not any(
                    map(_admits_other_namespaces, admitting)
                ):
                    reason = (
                        f"only pods of this namespace may send to port {port.target} of {pod.item.title},"
                        f" and {item.title} gets requests from outside"
                    )
                if reason:
                    outcome = Outcome.WARNED if admitting else None
                    yield Problem(
                        item=applying[0].item, field="spec.ingress", message=reason, outcome=outcome
                    )


def _admits(rule: PolicyRule, pod: PodTemplate, port: ServicePort) -> bool:
    return not rule.ports or any(_is_port(each, pod, port) for each in rule.ports)


def _is_port(admitted: PolicyPort, pod: PodTemplate, port: ServicePort) -> bool:
    if admitted.protocol != port.protocol:
        return False
    if admitted.port is None:
        return True
    targets = _numbers(port.target, port.protocol, pod)
    if isinstance(admitted.port, str):
        return not targets.isdisjoint(_numbers(admitted.port, admitted.protocol, pod))
    last = admitted.end_port or admitted.port
    return any(admitted.port <= number <= last for number in targets)


def _numbers(port: int | str, protocol: str, pod: PodTemplate) -> set[int]:
    """Return the numbers of a port of pods; none if they have no port of the name and protocol."""
    if isinstance(port, int):
        return {port}
    return {each.container_port for each in pod.ports if (each.name, each.protocol) == (port, protocol)}


def _requested_from_outside(objects: ObjectSet) -> set[tuple[str, str]]:
    """Return the Services of Ingresses, whose controllers are in other namespaces."""
    return {
        (objects.namespace_of(item), path.backend.service.name)
        for item, ingress in objects.decoded(IngressFields, INGRESS)
        for rule in ingress.spec.rules
        for path in rule.http.paths
        if path.backend.service is not None
    }


def _is_outside(item: LintObject, service: ServiceFields, outside: set[tuple[str, str]]) -> bool:
    return service.spec.type in _OUTSIDE_TYPES or any(name == item.name for _, name in outside)


def _admits_other_namespaces(rule: PolicyRule) -> bool:
    return not rule.peers_from or any(not _is_of_own_namespace(peer) for peer in rule.peers_from)


def _is_of_own_namespace(peer: PolicyPeer) -> bool:
    return peer.pod_selector is not None and peer.namespace_selector is None and peer.ip_block is None


def refused_names(objects: ObjectSet) -> Iterator[Problem]:
    """Find pods that may send to other pods, and may not ask for their names: no rule admits port 53."""
    policies = [Policy(*found) for found in objects.decoded(PolicyFields, _POLICY)]
    reported = set()
    for pod in objects.all_pods() if policies else ():
        applying = [each for each in policies if each.applies(objects, pod, _EGRESS)]
        rules = [rule for policy in applying for rule in policy.fields.spec.egress]
        if not rules or any(_admits_dns(rule) for rule in rules) or not any(map(_needs_names, rules)):
            continue
        item = next(each.item for each in applying if each.fields.spec.egress)
        if id(item) not in reported:
            reported.add(id(item))
            message = (
                f"the pods of {pod.item.title} cannot look up names of Services: no rule admits port 53 (UDP)"
            )
            yield Problem(item=item, field="spec.egress", message=message)


def _admits_dns(rule: PolicyRule) -> bool:
    return not rule.ports or any(
        each.port in (None, "dns", "dns-udp", "domain")
        or (isinstance(each.port, int) and each.port <= _DNS_PORT <= (each.end_port or each.port))
        or each.port in (5353, 1053, 8053)
        for each in rule.ports
    )


def _needs_names(rule: PolicyRule) -> bool:
    return not rule.peers_to or any(peer.ip_block is None for peer in rule.peers_to)
