"""How custom resources behave at writes: status is written apart if the definition says so, and generations count."""

from functools import partial

from apiserver.resources.strategy import MAIN, METADATA, SPEC, STATUS, Request, Strategy, Tree

_NEVER_COUNTS = frozenset({"kind", "apiVersion", "metadata"})


def _count(new: Tree, old: Tree, _request: Request, *, aside: frozenset[str]) -> None:
    """Whatever a definition's objects consist of: a change of it makes a new generation."""
    if _counted(new, aside) != _counted(old, aside):
        new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1


def _counted(tree: Tree, aside: frozenset[str]) -> Tree:
    return {name: value for name, value in tree.items() if name not in aside}


_WITH_STATUS = partial(_count, aside=_NEVER_COUNTS | {"status"})
_WITHOUT_STATUS = partial(_count, aside=_NEVER_COUNTS)


def custom_strategy(*, has_status: bool) -> Strategy:
    if not has_status:
        return Strategy(
            cleared=(),
            resets={},
            first_generation=1,
            unconditional_update=False,
            prepare_update={MAIN: _WITHOUT_STATUS, "scale": _WITHOUT_STATUS},
        )
    return Strategy(
        resets={MAIN: STATUS, "status": (*SPEC, *METADATA)},
        only={"status": STATUS},
        first_generation=1,
        unconditional_update=False,
        prepare_update={MAIN: _WITH_STATUS, "scale": _WITH_STATUS},
    )
