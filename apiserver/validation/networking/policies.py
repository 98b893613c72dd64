"""NetworkPolicies."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Final

from apimachinery import errors
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT, Path
from apiserver.validation.addresses import check_cidr, parse_sloppily
from apiserver.validation.kind import Validation
from apiserver.validation.labels import check_selector, check_selector_leniently
from apiserver.validation.objects import within
from apiserver.validation.ports import check_port
from apiserver.validation.rules import Check, Tree, each, every, field, one_of, pointer, port_number

_TYPES: Final = ("Ingress", "Egress")
_PEERS: Final = ("podSelector", "namespaceSelector", "ipBlock")


def _check_end_port(port: Tree, path: Path) -> Iterator[FieldError]:
    first, last, path = port.get("port"), port.get("endPort"), path.child("endPort")
    if last is None:
        return
    if first is None:
        yield errors.invalid(path, last, "may not be specified when `port` is not specified")
    elif isinstance(first, str):
        yield errors.invalid(path, last, "may not be specified when `port` is non-numeric")
    else:
        if last < first:
            yield errors.invalid(path, first, "must be greater than or equal to `port`")
        yield from port_number(last, path)


def _check_port(port: Tree, path: Path) -> Iterator[FieldError]:
    """Upstream looks at a name after the end of the range that it cannot begin."""
    yield from pointer("protocol", one_of("TCP", "UDP", "SCTP"))(port, path)
    parts = [pointer("port", check_port), _check_end_port]
    for check in reversed(parts) if isinstance(port.get("port"), str) else parts:
        yield from check(port, path)


# --- blocks of addresses


def _network(text: str) -> IPv4Network | IPv6Network | None:
    """The network that a text means, however sloppily."""
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


def _check_block(block: Tree, path: Path, kept: Container[str]) -> Iterator[FieldError]:
    outer_text = block.get("cidr", "")
    if not outer_text:
        yield errors.required(path.child("cidr"))
        return
    yield from check_cidr(outer_text, path.child("cidr"), kept)
    outer = _network(outer_text)
    if outer is None:
        return
    for index, text in enumerate(block.get("except") or ()):
        at = path.child("except").index(index)
        yield from check_cidr(text, at, kept)
        inner = _network(text)
        if inner is not None and not _is_within(inner, outer):
            yield errors.invalid(at, text, "must be a strict subset of `cidr`")


# --- specs


def _check_one_peer(peer: Tree, path: Path) -> Iterable[FieldError]:
    present = [name for name in _PEERS if peer.get(name) is not None]
    if not present:
        return (errors.required(path, "must specify a peer"),)
    if len(present) > 1 and "ipBlock" in present:
        return (errors.forbidden(path, "may not specify both ipBlock and another peer"),)
    return ()


def _check_types(types: Sequence[str] | None, path: Path) -> Iterable[FieldError]:
    if len(types or ()) > len(_TYPES):
        return (errors.invalid(path, types, "may not specify more than two policyTypes"),)
    return each(one_of(*_TYPES))(types, path)


def _spec(selector: Check, kept: Container[str]) -> Check:
    peer = every(
        pointer("podSelector", selector),
        pointer("namespaceSelector", selector),
        pointer("ipBlock", partial(_check_block, kept=kept)),
        _check_one_peer,
    )
    ports = field("ports", each(_check_port))
    return every(
        field("podSelector", selector, absent={}),
        field("ingress", each(ports, field("from", each(peer)))),
        field("egress", each(ports, field("to", each(peer)))),
        field("policyTypes", _check_types),
    )


_SPEC: Final = ROOT.child("spec")
_STRICT: Final = _spec(check_selector, ())


def _create(tree: Tree) -> Iterable[FieldError]:
    return _STRICT(within(tree, "spec"), _SPEC)


def _networks(spec: Tree) -> Iterator[str]:
    rules = [(rule, "from") for rule in (spec.get("ingress") or ())] + [
        (rule, "to") for rule in (spec.get("egress") or ())
    ]
    for rule, name in rules:
        for block in (peer.get("ipBlock") or {} for peer in (rule.get(name) or ())):
            yield block.get("cidr", "")
            yield from block.get("except") or ()


def _update(new: Tree, old: Tree) -> Iterable[FieldError]:
    """Networks that the policy had somewhere may be anywhere in it, whatever they look like."""
    before = within(old, "spec")
    was_wrong = any(check_selector(within(before, "podSelector"), _SPEC))
    selector = check_selector_leniently if was_wrong else check_selector
    return _spec(selector, frozenset(_networks(before)))(within(new, "spec"), _SPEC)


VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("networking.k8s.io", "NetworkPolicy"): Validation(create=_create, update=_update),
}
