"""The status that a quota should have, from what the caches show. Pure."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.quantity import ZERO, Quantity
from mockube.apimachinery.quota.amounts import Amounts, add, mask, read, to_tree
from mockube.apimachinery.quota.evaluator import Evaluator, is_counted, requirements_of
from mockube.apimachinery.tree import ReadOnlyTree


class CountedResource(NamedTuple):
    """A resource that quotas may count: its evaluator, and its objects in the quota's namespace."""

    evaluator: Evaluator
    objects: Iterable[ReadOnlyTree]


def count(quota: ReadOnlyTree, resources: Iterable[CountedResource], now: datetime) -> Amounts:
    """What is used of the quota, as far as these resources use it."""
    hard, requirements = read((quota.get("spec") or {}).get("hard")), requirements_of(quota)
    total: dict[str, Quantity] = {}
    for evaluator, objects in resources:
        names = evaluator.matching(hard)
        used: Amounts = dict.fromkeys(names, ZERO)
        for tree in objects:
            if is_counted(evaluator, requirements, tree):
                used = add(used, evaluator.usage(tree, now))
        total = add(total, used)
    return mask(total, hard.keys())


def with_status(quota: ReadOnlyTree, used: Amounts) -> dict[str, Any] | None:
    """The quota with its present usage; None if it does not differ. Resources that were not counted stay."""
    hard = read((quota.get("spec") or {}).get("hard"))
    status = quota.get("status") or {}
    before = read(status.get("used"))
    after = mask({**before, **used}, hard.keys())
    if "used" in status and "hard" in status and before == after and read(status["hard"]) == hard:
        return None
    return meta.with_value(quota, ("status",), {"hard": to_tree(hard), "used": to_tree(after)})


def is_lower(quota: ReadOnlyTree, used: Amounts) -> bool:
    """Whether the usage of any resource is lower than in the status."""
    before = read((quota.get("status") or {}).get("used"))
    return any(amount < before[name] for name, amount in used.items() if name in before)


def is_to_count(quota: ReadOnlyTree, before: ReadOnlyTree | None) -> bool:
    """Whether a quota is new, or limits something else than before."""
    if before is None or meta.uid(before) != meta.uid(quota):
        return True
    hard = [read((version.get("spec") or {}).get("hard")) for version in (quota, before)]
    return hard[0] != hard[1]
