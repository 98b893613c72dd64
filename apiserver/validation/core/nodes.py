"""Nodes."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT, Path
from apiserver.validation.addresses import check_cidr, is_dual_stack
from apiserver.validation.internal import internal
from apiserver.validation.kind import Validation
from apiserver.validation.labels import check_label_name
from apiserver.validation.objects import within
from apiserver.validation.resource_names import check_amount
from apiserver.validation.rules import Check, Tree, each, every, field, one_of, optional, required

# --- taints


def _check_value(value: str, path: Path) -> Iterable[FieldError]:
    problems = names.check_label_value(value)
    return (errors.invalid(path, value, ";".join(problems)),) if problems else ()


_TAINT: Final[Check] = every(
    field("key", check_label_name, absent=""),
    optional("value", _check_value),
    required("effect", one_of("NoSchedule", "PreferNoSchedule", "NoExecute")),
)

_TAINTS: Final = ROOT.child("metadata", "taints")
"""Where upstream says that taints are."""


def _check_taints(taints: Sequence[Tree] | None) -> Iterator[FieldError]:
    seen = set()
    for index, taint in enumerate(taints or ()):
        yield from _TAINT(taint, _TAINTS.index(index))
        key, effect = taint.get("key", ""), taint.get("effect", "")
        if (key, effect) in seen:
            detail = "taints must be unique by key and effect pair"
            yield errors.duplicate(_TAINTS.index(index), internal("core.Taint", taint), detail)
        seen.add((key, effect))


# --- resources and addresses


def _check_amounts(amounts: Tree | None, path: Path) -> Iterator[FieldError]:
    for name, amount in (amounts or {}).items():
        yield from check_amount(name, amount, path.key(name))


_RESOURCES: Final = every(field("capacity", _check_amounts), field("allocatable", _check_amounts))


def _check_resources(node: Tree) -> Iterable[FieldError]:
    return _RESOURCES(within(node, "status"), ROOT.child("status"))


_POD_CIDRS: Final = ROOT.child("spec", "podCIDRs")


def _check_pod_cidrs(networks: Sequence[str] | None) -> Iterator[FieldError]:
    yield from each(check_cidr)(networks, _POD_CIDRS)
    if not networks or len(networks) == 1:
        return
    if len(networks) > 2 or not is_dual_stack([network.partition("/")[0] for network in networks]):
        yield errors.invalid(_POD_CIDRS, networks, "may specify no more than one CIDR for each IP family")


def _create(node: Tree) -> Iterator[FieldError]:
    spec = within(node, "spec")
    yield from _check_taints(spec.get("taints"))
    yield from _check_resources(node)
    yield from _check_pod_cidrs(spec.get("podCIDRs"))


# --- changes

_SET_ONCE: Final = {"podCIDRs": "podCIDR", "providerID": "providerID"}
"""What a node is given once, and how upstream's messages name it."""


def _check_addresses(addresses: Sequence[Tree] | None) -> Iterator[FieldError]:
    seen = set()
    for index, address in enumerate(addresses or ()):
        key = address.get("type", ""), address.get("address", "")
        if key in seen:
            path = ROOT.child("status", "addresses").index(index)
            yield errors.duplicate(path, internal("core.NodeAddress", address))
        seen.add(key)


def _update(new: Tree, old: Tree) -> Iterator[FieldError]:
    """Through whichever door: the status is looked at together with the rest."""
    spec, before = within(new, "spec"), within(old, "spec")
    yield from _check_resources(new)
    yield from _check_addresses(within(new, "status").get("addresses"))
    for name, spelt in _SET_ONCE.items():
        if before.get(name) and before[name] != spec.get(name):
            detail = f'node updates may not change {spelt} except from "" to valid'
            yield errors.forbidden(ROOT.child("spec", name), detail)
    yield from _check_taints(spec.get("taints"))
    if spec.get("externalID", "") != before.get("externalID", ""):
        yield errors.forbidden(ROOT.child("spec", "externalID"), "may not be updated")


VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("", "Node"): Validation(create=_create, update=_update, subresources={"status": _update}),
}
