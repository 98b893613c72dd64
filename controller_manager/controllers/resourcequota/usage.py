"""Count the usage of thousands of objects: that of each is computed once for each of its versions."""

from collections import Counter
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Final, TypeAlias

from mockube.apimachinery import meta
from mockube.apimachinery.quantity import Quantity
from mockube.apimachinery.quota import amounts
from mockube.apimachinery.quota.amounts import Amounts
from mockube.apimachinery.quota.evaluator import Evaluator, is_counted
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.loop import yield_to_loop

_BATCH: Final = 100
"""Objects that are counted without yielding to the event loop, in some milliseconds."""

_Usage: TypeAlias = tuple[tuple[str, Quantity], ...]


class UsageCounter:
    """Counts the objects of one resource for one quota, again and again."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._usages: dict[tuple[str, str], _Usage] = {}
        """The usage of each object that was counted last, by uid and version."""

    async def count(
        self, requirements: Collection[ReadOnlyTree], objects: Iterable[ReadOnlyTree], now: datetime
    ) -> Amounts:
        """Return the sum of the usage of the objects in the scopes of the quota."""
        usages: dict[tuple[str, str], _Usage] = {}
        numbers = Counter[_Usage]()
        equal: dict[_Usage, _Usage] = {}
        for number, tree in enumerate(objects, 1):
            if number % _BATCH == 0:
                await yield_to_loop()
            if not is_counted(self._evaluator, requirements, tree):
                continue
            version = (meta.uid(tree), meta.resource_version(tree))
            usage = self._usages.get(version) or tuple(self._evaluator.usage(tree, now).items())
            usage = equal.setdefault(usage, usage)  # most objects have the same usage, which is kept once
            numbers[usage] += 1
            if not meta.is_deleting(tree):  # the usage of others ends with their grace period
                usages[version] = usage
        self._usages = usages
        total: Amounts = {}
        for usage, count in numbers.items():
            total = amounts.add(total, {name: amount * count for name, amount in usage})
        return total
