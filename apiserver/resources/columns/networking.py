"""The columns of networking.k8s.io."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from apimachinery import meta, wellknown
from apimachinery.groups import GroupResource
from apiserver.resources.columns import ages, ingress_points, selectors
from apiserver.resources.columns.defaults import name_with_default
from apiserver.resources.columns.parts import items, part, text
from apiserver.wire.table import AGE, NAME, Column, Printer, Tree

_MOST_HOSTS: Final = 3


def _ingress(ingress: Tree, now: datetime) -> list[Any]:
    return [
        meta.name(ingress),
        text(ingress, "spec", "ingressClassName", default="<none>"),
        _hosts(items(ingress, "spec", "rules")),
        ",".join(ingress_points.of(ingress)),
        "80, 443" if items(ingress, "spec", "tls") else "80",
        ages.age(ingress, now),
    ]


def _hosts(rules: Sequence[Any]) -> str:
    """Upstream counts as more every rule beyond the number shown, be there a host in it or not."""
    named = [index for index, rule in enumerate(rules) if text(rule, "host")][:_MOST_HOSTS]
    hosts = ",".join(text(rules[index], "host") for index in named) or "*"
    is_cut = len(named) == _MOST_HOSTS and named[-1] < len(rules) - 1
    return f"{hosts} + {len(rules) - _MOST_HOSTS} more..." if is_cut else hosts


def _ingress_class(tree: Tree, now: datetime) -> list[Any]:
    return [
        name_with_default(tree, wellknown.ANNOTATION_DEFAULT_INGRESS_CLASS),
        text(tree, "spec", "controller"),
        _parameters(part(tree, "spec", "parameters")),
        ages.age(tree, now),
    ]


def _parameters(reference: Any) -> str:
    if reference is None:
        return "<none>"
    kind, group = text(reference, "kind"), part(reference, "apiGroup")
    return f"{kind if group is None else f'{kind}.{group}'}/{text(reference, 'name')}"


def _network_policy(tree: Tree, now: datetime) -> list[Any]:
    # A policy without a selector is one for all pods, not for none.
    selector = part(tree, "spec", "podSelector") or {}
    return [meta.name(tree), selectors.of_selector(selector), ages.age(tree, now)]


def _ip_address(tree: Tree, now: datetime) -> list[Any]:
    # Upstream has no column for the last cell; kubectl passes over it, and other clients expect it.
    return [meta.name(tree), _parent(part(tree, "spec", "parentRef")), ages.age(tree, now)]


def _parent(reference: Any) -> str:
    if reference is None:
        return "<none>"
    resource = GroupResource(text(reference, "group"), text(reference, "resource"))
    namespace, name = text(reference, "namespace"), text(reference, "name")
    return "/".join(filter(None, (str(resource).lower(), namespace, name)))


def _service_cidr(tree: Tree, now: datetime) -> list[Any]:
    return [meta.name(tree), ",".join(items(tree, "spec", "cidrs")), ages.age(tree, now)]


PRINTERS: Final[Mapping[str, Printer]] = {
    "Ingress": Printer(
        columns=(
            NAME,
            Column(name="Class"),
            Column(name="Hosts"),
            Column(name="Address"),
            Column(name="Ports"),
            AGE,
        ),
        cells=_ingress,
    ),
    "IngressClass": Printer(
        columns=(NAME, Column(name="Controller"), Column(name="Parameters"), AGE), cells=_ingress_class
    ),
    "NetworkPolicy": Printer(columns=(NAME, Column(name="Pod-Selector"), AGE), cells=_network_policy),
    "IPAddress": Printer(columns=(NAME, Column(name="ParentRef")), cells=_ip_address),
    "ServiceCIDR": Printer(columns=(NAME, Column(name="CIDRs"), AGE), cells=_service_cidr),
}
