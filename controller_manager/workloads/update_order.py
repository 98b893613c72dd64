"""The order in which pods are updated: by priorityStrategy, and scattered by scatterStrategy."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from mockube.apimachinery import labels
from mockube.apimachinery.labels import SelectorError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.podview import PodView

_DIGITS: Final = "0123456789"
_MAX_INT64: Final = 2**63 - 1


# --- by priority


def by_priority(pods: Sequence[PodView], strategy: ReadOnlyTree | None) -> list[PodView]:
    """`priorityStrategy`: by the sum of weights, or by the number at the end of a label. Equals stay in their order."""
    priorities = strategy or {}
    if weights := priorities.get("weightPriority"):
        return sorted(pods, key=lambda pod: -_weight(pod, weights))
    if terms := priorities.get("orderPriority"):
        return sorted(pods, key=lambda pod: _sort_key(pod, terms))
    return [*pods]


def _weight(pod: PodView, terms: Iterable[ReadOnlyTree]) -> int:
    return sum(int(term.get("weight") or 0) for term in terms if _selects(term.get("matchSelector"), pod))


def _selects(selector: ReadOnlyTree | None, pod: PodView) -> bool:
    try:
        return labels.from_label_selector(selector).matches(pod.labels)
    except SelectorError:
        return False


def _sort_key(pod: PodView, terms: Sequence[ReadOnlyTree]) -> tuple[int, int]:
    """Order by the first term whose label the pod has, then by the greatest number. A pod without any label comes
    first.
    """
    for index, term in enumerate(terms):
        value = pod.labels.get(term["orderedKey"])
        if value is not None:
            return index, -_trailing_number(value)
    return -1, 0


def _trailing_number(text: str) -> int:
    digits = text[len(text.rstrip(_DIGITS)) :].lstrip("0")
    number = int(digits or 0) if len(digits) <= len(str(_MAX_INT64)) else 0
    return number if number <= _MAX_INT64 else 0


# --- scattered


class _Density(NamedTuple):
    """So many groups, each with so many pods of the kind and so many others."""

    groups: int
    matched: int
    others: int
    ahead: int
    """Other pods, before the first group."""


def scatter(
    waiting: Sequence[PodView], all_pods: Sequence[PodView], terms: Sequence[Mapping[str, str]]
) -> list[PodView]:
    """`scatterStrategy`: pods that wait, with those of each term spread over the others; the commonest terms first."""
    ordered = [*waiting]
    for term in _by_frequency(waiting, terms):
        ordered = _scattered_by(term, ordered, all_pods)
    return ordered


def _by_frequency(waiting: Sequence[PodView], terms: Sequence[Mapping[str, str]]) -> list[tuple[str, str]]:
    pairs = list(dict.fromkeys((term["key"], term["value"]) for term in terms))
    counts = {term: sum(_has_label(pod, term) for pod in waiting) for term in pairs}
    return sorted((term for term in pairs if counts[term]), key=lambda term: -counts[term])


def _has_label(pod: PodView, term: tuple[str, str]) -> bool:
    key, value = term
    return pod.labels.get(key) == value


def _scattered_by(
    term: tuple[str, str], waiting: Sequence[PodView], all_pods: Sequence[PodView]
) -> list[PodView]:
    """One pod of the kind is kept for the end, so that the last group is not without."""
    matched = [pod for pod in waiting if _has_label(pod, term)]
    others = [pod for pod in waiting if not _has_label(pod, term)]
    if len(matched) <= 1 or len(others) <= 1:
        return [*waiting]
    *matched, last = matched
    total = sum(_has_label(pod, term) for pod in all_pods) - 1
    density = _density((len(matched), len(others)), (total, len(all_pods) - total - 1))
    ordered, others = others[: density.ahead], others[density.ahead :]
    for group in range(density.groups):
        ordered += matched[group * density.matched : (group + 1) * density.matched]
        ordered += others[group * density.others : (group + 1) * density.others]
    ordered += matched[density.groups * density.matched :]
    ordered += others[density.groups * density.others :]
    return [*ordered, last]


def _density(waiting: tuple[int, int], total: tuple[int, int]) -> _Density:
    """As those that wait allow; as all pods do, where the others among them are scarcer than among those that wait."""
    matched, others = waiting
    all_matched, all_others = total
    if all_others * matched >= others * all_matched:
        groups = min(matched, others)
        return _Density(groups, _round_half_up(matched, groups), _round_half_up(others, groups), 0)
    groups = min(all_matched, all_others)
    of_each = _round_half_up(all_matched, groups), _round_half_up(all_others, groups)
    fitting = min(matched // of_each[0], others // of_each[1])
    return _Density(fitting, *of_each, others - fitting * of_each[1])


def _round_half_up(dividend: int, divisor: int) -> int:
    """To the nearest, halves up."""
    return (2 * dividend + divisor) // (2 * divisor)
