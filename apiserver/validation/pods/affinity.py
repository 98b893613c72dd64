"""Which nodes a pod may run on or likes best: by their labels, and by the pods that they run already."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Final

from apimachinery import errors, names
from apimachinery.errors import FieldError
from apimachinery.paths import ROOT, Path
from apiserver.validation.labels import check_label_name, check_selector, check_selector_leniently
from apiserver.validation.node_selectors import (
    check_node_selector,
    check_node_selector_leniently,
    check_term_leniently,
)
from apiserver.validation.pods.leniency import Leniency
from apiserver.validation.rules import Check, Tree, each, every, field, must, pointer, valid

REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"

_WEIGHT: Final = field(
    "weight", must(lambda weight: 1 <= weight <= 100, "must be in the range 1-100"), absent=0
)


# --- nodes


def _node_affinity(selector: Check) -> Check:
    """Preferences may ask for what no node can have."""
    return every(
        pointer(REQUIRED, selector),
        field(PREFERRED, each(_WEIGHT, field("preference", check_term_leniently, absent={}))),
    )


# --- pods


def check_label_keys(keys: Sequence[str], selector: Tree | None, path: Path) -> Iterable[FieldError]:
    """Keys of labels whose values are taken from the pod itself."""
    if keys and selector is None:
        return (errors.forbidden(path, "must not be specified when labelSelector is not set"),)
    return each(check_label_name)(keys, path)


def check_match_label_keys(term: Tree, path: Path, *, mismatched: Sequence[str] = ()) -> Iterator[FieldError]:
    """Upstream adds the keys to the selector first; where one is there twice, it was there before."""
    keys, selector = term.get("matchLabelKeys", ()), term.get("labelSelector")
    yield from check_label_keys(keys, selector, path.child("matchLabelKeys"))
    yield from check_label_keys(mismatched, selector, path.child("mismatchLabelKeys"))
    places = {key: place for place, key in enumerate(keys)}
    seen = {*((selector or {}).get("matchLabels") or ())}
    for expression in (selector or {}).get("matchExpressions", ()):
        key = expression.get("key", "")
        if key in places and key in seen:
            problem = "exists in both matchLabelKeys and labelSelector"
            yield errors.invalid(path.index(places[key]), key, problem)
        seen.add(key)
    for place, key in enumerate(keys):
        if key in mismatched:
            problem = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield errors.invalid(path.child("matchLabelKeys").index(place), key, problem)


def _check_namespaces(namespaces: Iterable[str] | None, path: Path) -> Iterator[FieldError]:
    """`path` is the term's: upstream does not say which namespace it means."""
    for namespace in namespaces or ():
        yield from valid(names.check_dns1123_label)(namespace, path.child("namespace"))


def _check_topology_key(term: Tree, path: Path) -> Iterator[FieldError]:
    key, path = term.get("topologyKey", ""), path.child("topologyKey")
    if not key:
        yield errors.required(path, "can not be empty")
    yield from check_label_name(key, path)


def _term(selector: Check) -> Check:
    selectors = every(pointer("labelSelector", selector), pointer("namespaceSelector", selector))

    def check(term: Tree, path: Path) -> Iterator[FieldError]:
        yield from selectors(term, path)
        yield from _check_namespaces(term.get("namespaces"), path)
        yield from check_match_label_keys(term, path, mismatched=term.get("mismatchLabelKeys", ()))
        yield from _check_topology_key(term, path)

    return check


def _pod_affinity(selector: Check) -> Check:
    term = _term(selector)
    return every(
        field(REQUIRED, each(term)),
        field(PREFERRED, each(_WEIGHT, field("podAffinityTerm", term, absent={}))),
    )


@cache
def _affinity(*, any_node_values: bool, any_selector_values: bool) -> Check:
    nodes = check_node_selector_leniently if any_node_values else check_node_selector
    pods = _pod_affinity(check_selector_leniently if any_selector_values else check_selector)
    return every(
        pointer("nodeAffinity", _node_affinity(nodes)),
        pointer("podAffinity", pods),
        pointer("podAntiAffinity", pods),
    )


def check_affinity(affinity: Tree, path: Path, leniency: Leniency) -> Iterable[FieldError]:
    check = _affinity(
        any_node_values=leniency.node_affinity_values, any_selector_values=leniency.selector_values
    )
    return check(affinity, path)


_SELECTORS: Final = every(
    pointer("labelSelector", check_selector), pointer("namespaceSelector", check_selector)
)


def has_wrong_selectors(affinity: Tree) -> bool:
    """Whether a selector of pods asks for values that no label can have."""
    terms = [
        term
        for of_pods in (affinity.get("podAffinity") or {}, affinity.get("podAntiAffinity") or {})
        for term in (
            *of_pods.get(REQUIRED, ()),
            *(weighted.get("podAffinityTerm") or {} for weighted in of_pods.get(PREFERRED, ())),
        )
    ]
    return any(any(_SELECTORS(term, ROOT)) for term in terms)
