"""NetworkPolicy."""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime
from functools import partial
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final

from mockube.apimachinery import errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import Resource
from mockube.apiserver.kinds.common import ages, checks
from mockube.apiserver.kinds.common.address_warnings import cidr_warnings, cidrs_warnings
from mockube.apiserver.kinds.common.addresses import check_cidr, check_port, parse_sloppily
from mockube.apiserver.kinds.common.cells import part, selector_text
from mockube.apiserver.kinds.common.checks import Check
from mockube.apiserver.kinds.common.declared import DeclaredRules, required
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.selectors import check_selector, check_selector_leniently
from mockube.apiserver.kinds.common.validation import Validation, get_struct
from mockube.apiserver.kinds.common.validation_context import is_before
from mockube.apiserver.kinds.common.warnings import on_create_and_update
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import SPEC, Strategy
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

_TYPES: Final = ("Ingress", "Egress")
_PEERS: Final = ("podSelector", "namespaceSelector", "ipBlock")


def _check_end_port(port: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    first, last, path = port.get("port"), port.get("endPort"), path.child("endPort")
    if last is None:
        return
    if first is None:
        yield errors.invalid(path, last, "may not be specified when `port` is not specified")
    elif isinstance(first, str):
        yield errors.invalid(path, last, "may not be specified when `port` is non-numeric")
    else:
        if last < first:
            # Before 1.37, the error has the value of the other field.
            value = first if is_before("1.37") else last
            yield errors.invalid(path, value, "must be greater than or equal to `port`")
        yield from checks.port_number(last, path)


def _check_port(port: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check a named port after `endPort`: upstream returns the errors in this order."""
    yield from checks.pointer("protocol", checks.one_of("TCP", "UDP", "SCTP"))(port, path)
    parts = [checks.pointer("port", check_port), _check_end_port]
    for check in reversed(parts) if isinstance(port.get("port"), str) else parts:
        yield from check(port, path)


# --- IP blocks


def _network(text: str) -> IPv4Network | IPv6Network | None:
    """Parse a CIDR, which may be in another form than the canonical one."""
    host, _, length = text.partition("/")
    address = parse_sloppily(host)
    if address is None:
        return None
    try:
        return ip_network(f"{address}/{length}", strict=False)
    except ValueError:
        return None


def _is_within(inner: IPv4Network | IPv6Network, outer: IPv4Network | IPv6Network) -> bool:
    if inner.version != outer.version or inner.prefixlen <= outer.prefixlen:
        return False
    return inner.network_address in outer


def _check_block(block: ReadOnlyTree, path: Path, valid_old_cidrs: AbstractSet[str]) -> Iterator[FieldError]:
    outer_text = block.get("cidr", "")
    if not outer_text:
        yield errors.required(path.child("cidr"))
        return
    yield from check_cidr(outer_text, path.child("cidr"), valid_old_cidrs)
    outer = _network(outer_text)
    if outer is None:
        return
    for index, text in enumerate(block.get("except") or ()):
        item_path = path.child("except").index(index)
        yield from check_cidr(text, item_path, valid_old_cidrs)
        inner = _network(text)
        if inner is not None and not _is_within(inner, outer):
            yield errors.invalid(item_path, text, "must be a strict subset of `cidr`")


# --- specs


def _check_one_peer(peer: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    present = [name for name in _PEERS if peer.get(name) is not None]
    if not present:
        return (errors.required(path, "must specify a peer"),)
    if len(present) > 1 and "ipBlock" in present:
        return (errors.forbidden(path, "may not specify both ipBlock and another peer"),)
    return ()


def _check_types(types: Sequence[str] | None, path: Path) -> Iterable[FieldError]:
    if len(types or ()) > len(_TYPES):
        return (errors.invalid(path, types, "may not specify more than two policyTypes"),)
    return checks.each_item(checks.one_of(*_TYPES))(types, path)


def _spec(selector: Check, valid_old_cidrs: AbstractSet[str]) -> Check:
    peer = checks.all_of(
        checks.pointer("podSelector", selector),
        checks.pointer("namespaceSelector", selector),
        checks.pointer("ipBlock", partial(_check_block, valid_old_cidrs=valid_old_cidrs)),
        _check_one_peer,
    )
    ports = checks.field("ports", checks.each_item(_check_port))
    return checks.all_of(
        checks.field("podSelector", selector, absent={}),
        checks.field("ingress", checks.each_item(ports, checks.field("from", checks.each_item(peer)))),
        checks.field("egress", checks.each_item(ports, checks.field("to", checks.each_item(peer)))),
        checks.field("policyTypes", _check_types),
    )


_SPEC: Final = ROOT.child("spec")
_STRICT: Final = _spec(check_selector, frozenset())


def _create(tree: ReadOnlyTree) -> Iterable[FieldError]:
    return _STRICT(get_struct(tree, "spec"), _SPEC)


def _networks(spec: ReadOnlyTree) -> Iterator[str]:
    rules = [(rule, "from") for rule in (spec.get("ingress") or ())] + [
        (rule, "to") for rule in (spec.get("egress") or ())
    ]
    for rule, name in rules:
        for block in filter(None, (peer.get("ipBlock") for peer in (rule.get(name) or ()))):
            yield block.get("cidr", "")
            yield from block.get("except") or ()


def _update(new: ReadOnlyTree, old: ReadOnlyTree) -> Iterable[FieldError]:
    """Check an update. CIDRs that the old policy has anywhere are valid in any form."""
    old_spec = get_struct(old, "spec")
    old_is_invalid = any(check_selector(get_struct(old_spec, "podSelector"), _SPEC))
    selector = check_selector_leniently if old_is_invalid else check_selector
    return _spec(selector, frozenset(_networks(old_spec)))(get_struct(new, "spec"), _SPEC)


# --- defaults, warnings and columns


def _default_policy_types(spec: Tree) -> None:
    """Without types, a policy applies to ingress, and to egress if it has egress rules."""
    spec.setdefault("policyTypes", ["Ingress", "Egress"] if "egress" in spec else ["Ingress"])


def _warn(policy: ReadOnlyTree) -> Iterator[str]:
    spec = policy.get("spec") or {}
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            yield from _peer_warnings(rule.get(peers) or (), _SPEC.child(direction).index(index).child(peers))


def _peer_warnings(peers: Iterable[ReadOnlyTree], path: Path) -> Iterator[str]:
    for index, peer in enumerate(peers):
        if block := peer.get("ipBlock"):
            field_path = path.index(index).child("ipBlock")
            yield from cidr_warnings(block.get("cidr", ""), field_path.child("cidr"))
            yield from cidrs_warnings(block.get("except"), field_path.child("except"))


def _cells(tree: Tree, now: datetime) -> list[Any]:
    # A policy without a selector selects all pods, not none.
    selector = part(tree, "spec", "podSelector") or {}
    return [meta.name(tree), selector_text(selector), ages.age(tree, now)]


KIND: Final = Kind(
    resource=Resource(
        group="networking.k8s.io",
        version="v1",
        name="networkpolicies",
        kind="NetworkPolicy",
        short_names=("netpol",),
    ),
    strategy=Strategy(generation=SPEC, first_generation=1, empty_counts=True),
    validation=Validation(
        create=_create,
        update=_update,
        declared=DeclaredRules(
            required("spec.ingress[].from[].ipBlock.cidr"), required("spec.egress[].to[].ipBlock.cidr")
        ),
    ),
    warnings=on_create_and_update(_warn),
    printer=Printer(columns=(NAME, Column(name="Pod-Selector"), AGE_COLUMN), cells=_cells),
    defaults=defaults_table(
        "io.k8s.api.networking.v1",
        {"NetworkPolicySpec": _default_policy_types, "NetworkPolicyPort": {"protocol": "TCP"}},
    ),
)
