"""Which pods a NetworkPolicy isolates, and which of its selectors match nothing."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from mockube.apimachinery import meta
from mockube.apimachinery.groups import NAMESPACES, PODS, GroupResource
from mockube.apimachinery.labels import SelectorError, from_label_selector
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.counted import counted

from .commands import kubectl
from .explanation import Evidence, Explanation, Origin, Remedy, no_problem, unknown
from .facts import Facts
from .members import is_terminal

POLICIES: Final = GroupResource("networking.k8s.io", "networkpolicies")
_DIRECTIONS: Final = {"Ingress": ("ingress", "from"), "Egress": ("egress", "to")}
"""The fields of the rules of a direction, and of their peers."""


def explain_policy(policy: ReadOnlyTree, facts: Facts) -> Explanation:
    spec, namespace = policy["spec"], meta.namespace(policy)
    if not facts.may_list(PODS, namespace):
        return unknown("its pods cannot be looked at without the right to list pods")
    try:
        return _explain(policy, spec, facts)
    except SelectorError as error:
        return unknown(f"a selector of it is invalid: {error}")


def _explain(policy: ReadOnlyTree, spec: ReadOnlyTree, facts: Facts) -> Explanation:
    namespace = meta.namespace(policy)
    count = len(_matching(spec.get("podSelector"), facts.list(PODS, namespace)))
    if not count:
        return _matches_nothing(
            policy, "it isolates nothing", "pod", namespace, spec.get("podSelector"), ("podSelector",)
        )
    for direction in spec.get("policyTypes") or ():
        field, peers = _DIRECTIONS[direction]
        for position, rule in enumerate(spec.get(field) or (), start=1):
            allowed = rule.get(peers) or ()
            empty = [each for each in (_empty_selector(peer, namespace, facts) for peer in allowed) if each]
            if empty and len(empty) == len(allowed):
                cause = f"rule {position} of {field} allows nothing"
                return _matches_nothing(policy, cause, *empty[0], (field,))
    return no_problem(
        f"it isolates {counted(count, 'pod', 'pods')}: {'; '.join(_directions(spec))}",
        Evidence(text=_text(spec.get("podSelector")), source="spec.podSelector"),
    )


def _directions(spec: ReadOnlyTree) -> Iterator[str]:
    for direction in spec.get("policyTypes") or ():
        rules = spec.get(_DIRECTIONS[direction][0]) or ()
        allows = f"what {counted(len(rules), 'rule allows', 'rules allow')}" if rules else "nothing"
        yield f"{direction} of {allows}"


def _empty_selector(peer: ReadOnlyTree, namespace: str, facts: Facts) -> tuple[str, str, Any] | None:
    """Return what a peer selects of which there is none: its kind, the namespace, and the selector; None if it matches something."""
    of_pods, of_namespaces = peer.get("podSelector"), peer.get("namespaceSelector")
    if "ipBlock" in peer:
        return None
    if of_namespaces is not None:
        if not facts.may_list(NAMESPACES):
            return None
        names = [meta.name(each) for each in _matching(of_namespaces, facts.list(NAMESPACES))]
        if not names:
            return "namespace", "", of_namespaces
    else:
        names = [namespace]
    if of_pods is None or not all(facts.may_list(PODS, name) for name in names):
        return None
    if any(_matching(of_pods, facts.list(PODS, name)) for name in names):
        return None
    return "pod", names[0] if len(names) == 1 else "", of_pods


def _matching(selector: Any, objects: Sequence[ReadOnlyTree]) -> Sequence[ReadOnlyTree]:
    matcher = from_label_selector(selector or {})
    return [each for each in objects if matcher.matches(meta.labels(each)) and not is_terminal(each)]


def _matches_nothing(
    policy: ReadOnlyTree, effect: str, kind: str, namespace: str, selector: Any, field: tuple[str, ...]
) -> Explanation:
    place = f" in {namespace}" if namespace else ""
    resource = f"{kind}s"
    return Explanation(
        cause=f"{effect}: no {kind}{place} has the labels {_text(selector)}"
        if _text(selector)
        else f"{effect}: there is no {kind}{place}",
        evidence=[Evidence(text=_text(selector) or "any", source=f"spec.{field[0]}")],
        remedies=[
            Remedy(
                text=f"The labels of the {resource}:",
                command=kubectl("get", resource, "--show-labels", namespace=namespace),
            ),
            Remedy(text=f"Change the selector in spec.{field[0]}, or the labels of the {resource}."),
        ],
        origins=[Origin.of(policy, "spec", *field)],
    )


def _text(selector: Any) -> str:
    """Return a selector as kubectl prints it."""
    labels = (selector or {}).get("matchLabels") or {}
    expressions = (selector or {}).get("matchExpressions") or ()
    return ",".join(
        [
            *(f"{key}={value}" for key, value in labels.items()),
            *(f"{each['key']} {each['operator']} {each.get('values') or ''}".strip() for each in expressions),
        ]
    )
