"""Order pods for an update by OpenKruise's priorityStrategy and scatterStrategy."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from mockube.apimachinery import labels
from mockube.apimachinery.labels import SelectorError
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.podview import PodView

_DIGITS: Final = "0123456789"
_MAX_INT64: Final = 2**63 - 1


# --- by priority


def by_priority(pods: Sequence[PodView], strategy: ReadOnlyTree | None) -> list[PodView]:
    """Sort pods by `priorityStrategy`: by the sum of weights, or by the number at the end of a label; stably."""
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
    """Return the sort key: the first term whose label the pod has, then the number, greatest first.

    Pods without any of the labels come first.
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
    """The number of groups, and the numbers of matching and of other pods in each."""

    groups: int
    matched: int
    others: int
    leading_others: int
    """The number of other pods before the first group."""


def scatter(
    pods_to_update: Sequence[PodView], all_pods: Sequence[PodView], terms: Sequence[Mapping[str, str]]
) -> list[PodView]:
    """Scatter pods by `scatterStrategy`: spread those that match each term over the others, the commonest term first."""
    ordered = [*pods_to_update]
    for term in _by_frequency(pods_to_update, terms):
        ordered = _scattered_by(term, ordered, all_pods)
    return ordered


def _by_frequency(
    pods_to_update: Sequence[PodView], terms: Sequence[Mapping[str, str]]
) -> list[tuple[str, str]]:
    pairs = list(dict.fromkeys((term["key"], term["value"]) for term in terms))
    counts = {term: sum(_has_label(pod, term) for pod in pods_to_update) for term in pairs}
    return sorted((term for term in pairs if counts[term]), key=lambda term: -counts[term])


def _has_label(pod: PodView, term: tuple[str, str]) -> bool:
    key, value = term
    return pod.labels.get(key) == value


def _scattered_by(
    term: tuple[str, str], pods_to_update: Sequence[PodView], all_pods: Sequence[PodView]
) -> list[PodView]:
    """Spread the pods that match the term. One of them comes last, so that the last group has one."""
    matched = [pod for pod in pods_to_update if _has_label(pod, term)]
    others = [pod for pod in pods_to_update if not _has_label(pod, term)]
    if len(matched) <= 1 or len(others) <= 1:
        return [*pods_to_update]
    *matched, last = matched
    total = sum(_has_label(pod, term) for pod in all_pods) - 1
    density = _density((len(matched), len(others)), (total, len(all_pods) - total - 1))
    ordered, others = others[: density.leading_others], others[density.leading_others :]
    for group in range(density.groups):
        ordered += matched[group * density.matched : (group + 1) * density.matched]
        ordered += others[group * density.others : (group + 1) * density.others]
    ordered += matched[density.groups * density.matched :]
    ordered += others[density.groups * density.others :]
    return [*ordered, last]


def _density(pods_to_update: tuple[int, int], total: tuple[int, int]) -> _Density:
    """Compute the groups from the pods to update, or from all pods if other pods are rarer among these."""
    matched, others = pods_to_update
    all_matched, all_others = total
    if all_others * matched >= others * all_matched:
        groups = min(matched, others)
        return _Density(groups, _round_half_up(matched, groups), _round_half_up(others, groups), 0)
    groups = min(all_matched, all_others)
    group_size = _round_half_up(all_matched, groups), _round_half_up(all_others, groups)
    full_groups = min(matched // group_size[0], others // group_size[1])
    return _Density(full_groups, *group_size, others - full_groups * group_size[1])


def _round_half_up(dividend: int, divisor: int) -> int:
    """Divide, and round to the nearest integer, halves up."""
    return (2 * dividend + divisor) // (2 * divisor)
