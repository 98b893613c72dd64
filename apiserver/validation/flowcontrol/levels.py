"""PriorityLevelConfigurations."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from apimachinery import errors, meta
from apimachinery.errors import FieldError
from apimachinery.groups import GroupKind
from apimachinery.paths import ROOT, Path
from apiserver.validation.flowcontrol.status import EXEMPT, update_status
from apiserver.validation.kind import Validation
from apiserver.validation.objects import as_created, within
from apiserver.validation.rules import (
    Check,
    Tree,
    between,
    every,
    field,
    must,
    one_of,
    pointer,
    refused,
    required,
)

_SHARES: Final = must(lambda shares: shares >= 0, "must be a non-negative integer")
_PERCENT: Final = between(0, 100)
_COUNT: Final = must(lambda count: count > 0, "must be positive")
_MOST_QUEUES: Final = 10_000_000
_MOST_ENTROPY: Final = 60


def _hand_problem(hand: int, queues: int) -> str:
    """Dealing a hand from a deck of queues takes bits of a hash, of which there are not that many."""
    if hand <= 0:
        return "must be positive"
    if hand > queues:
        return f"should not be greater than queues ({queues})"
    if math.ceil(math.log2(queues) * hand) > _MOST_ENTROPY:
        decks = f"deckSize {queues} and handSize {hand}"
        return f"required entropy bits of {decks} should not be greater than {_MOST_ENTROPY}"
    return ""


def _check_hand(queuing: Tree, path: Path) -> Iterable[FieldError]:
    hand = queuing.get("handSize", 0)
    problem = _hand_problem(hand, queuing.get("queues", 0))
    return (errors.invalid(path.child("handSize"), hand, problem),) if problem else ()


_QUEUING: Final = every(
    field("queueLengthLimit", _COUNT, absent=0),
    field(
        "queues",
        _COUNT,
        must(lambda queues: queues <= _MOST_QUEUES, f"must not be greater than {_MOST_QUEUES}"),
        absent=0,
    ),
    _check_hand,
)

_RESPONSES: Final[Mapping[str, Check]] = {
    "Queue": required(
        "queuing", _QUEUING, detail="must not be empty if limited.limitResponse.type is Limited"
    ),
    "Reject": pointer("queuing", refused("must be nil if limited.limitResponse.type is not Limited")),
}


def _by_type(checks: Mapping[str, Check]) -> Check:
    def check(of: Tree, path: Path) -> Iterable[FieldError]:
        kind = of.get("type", "")
        return checks[kind](of, path) if kind in checks else required("type", one_of(*checks))(of, path)

    return check


_LENDABLE: Final = pointer("lendablePercent", _PERCENT)
_LIMITED: Final = every(
    field("nominalConcurrencyShares", _SHARES, absent=0),
    field("limitResponse", _by_type(_RESPONSES), absent={}),
    _LENDABLE,
    pointer(
        "borrowingLimitPercent",
        must(lambda percent: percent >= 0, "if specified, must be a non-negative integer"),
    ),
)
_LEVELS: Final[Mapping[str, Check]] = {
    "Exempt": every(
        pointer("limited", refused("must be nil if the type is not Limited")),
        pointer("exempt", field("nominalConcurrencyShares", _SHARES, absent=0), _LENDABLE),
    ),
    "Limited": every(
        pointer("exempt", refused("must be nil if the type is Limited")),
        lambda spec, path: (
            ()
            if spec.get("limited") is not None
            else (errors.required(path.child("limited"), "must not be empty when type is Limited"),)
        ),
        pointer("limited", _LIMITED),
    ),
}
_LEVEL: Final = _by_type(_LEVELS)


def _create_level(tree: Tree) -> Iterator[FieldError]:
    spec, path = within(tree, "spec"), ROOT.child("spec")
    type_ = spec.get("type", "")
    if (meta.name(tree) == EXEMPT) != (type_ == "Exempt"):
        problem = "type must be 'Exempt' if and only if name is 'exempt'"
        yield errors.invalid(path.child("type"), type_, problem)
    yield from _LEVEL(spec, path)


VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("flowcontrol.apiserver.k8s.io", "PriorityLevelConfiguration"): Validation(
        create=_create_level,
        update=as_created(_create_level, namespaced=False),
        subresources={"status": update_status},
    ),
}
