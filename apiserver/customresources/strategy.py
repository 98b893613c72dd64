"""The strategy of custom resources: the status subresource if the definition has it, and the generation."""

from functools import partial

from mockube.apimachinery.gonumbers import with_go_numbers
from mockube.apimachinery.tree import Tree
from mockube.apiserver.kinds import strategy
from mockube.apiserver.kinds.strategy import Strategy, StrategyContext

_NEVER_COUNTS = frozenset({"kind", "apiVersion", "metadata"})


def _increment_generation(
    new: Tree, old: Tree, _request: StrategyContext, *, ignored: frozenset[str]
) -> None:
    """Increment the generation if any field has changed, except those in `ignored`."""
    if _without_fields(new, ignored) != _without_fields(old, ignored):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def _without_fields(tree: Tree, ignored: frozenset[str]) -> Tree:
    return {name: value for name, value in tree.items() if name not in ignored}


def _write_numbers(tree: Tree) -> None:
    """Normalize numbers like upstream before an object is stored: 2.0 and 2e0 become 2."""
    for name, item in tree.items():
        if item.__class__ is not str and name != "metadata":
            tree[name] = with_go_numbers(item)


_WITH_STATUS = partial(_increment_generation, ignored=_NEVER_COUNTS | {"status"})
_WITHOUT_STATUS = partial(_increment_generation, ignored=_NEVER_COUNTS)


def custom_strategy(*, has_status: bool, has_default_status: bool = False) -> Strategy:
    if not has_status:
        return Strategy(
            cleared=(),
            resets={},
            canonicalize=_write_numbers,
            first_generation=1,
            unconditional_update=False,
            prepare_update={strategy.MAIN: _WITHOUT_STATUS, "scale": _WITHOUT_STATUS},
        )
    return Strategy(
        resets={strategy.MAIN: strategy.STATUS, "status": (*strategy.SPEC, *strategy.METADATA)},
        only={"status": strategy.STATUS},
        canonicalize=_write_numbers,
        has_default_status=has_default_status,
        first_generation=1,
        unconditional_update=False,
        prepare_update={strategy.MAIN: _WITH_STATUS, "scale": _WITH_STATUS},
    )
