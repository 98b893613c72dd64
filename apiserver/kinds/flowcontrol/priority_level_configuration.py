"""PriorityLevelConfiguration, and the strategy and the validation of the status that it shares with FlowSchema."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from mockube.apimachinery import errors, meta
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.tree import ReadOnlyTree, Tree
from mockube.apiserver.kinds.api_resource import STATUS, Resource
from mockube.apiserver.kinds.common import cells, validation
from mockube.apiserver.kinds.common.ages import age
from mockube.apiserver.kinds.common.cells import number, text
from mockube.apiserver.kinds.common.checks import (
    Check,
    all_of,
    between,
    field,
    one_of,
    pointer,
    refuse_any,
    require,
    require_that,
)
from mockube.apiserver.kinds.common.declared import DeclaredRules, forbidden, required
from mockube.apiserver.kinds.common.defaults import defaults_table
from mockube.apiserver.kinds.common.validation import Update, Validation
from mockube.apiserver.kinds.kind import Kind
from mockube.apiserver.kinds.strategy import OWN_STATUS, SPEC, Strategy, StrategyContext
from mockube.apiserver.wire.table import AGE_COLUMN, NAME, Column, Printer

# --- strategy and status, which FlowSchema shares

EXEMPT: Final = "exempt"
"""The name of the FlowSchema and of the level whose requests are never queued."""


def _keep_metadata(new: Tree, old: Tree, _request: StrategyContext) -> None:
    """Keep the old metadata in an update of the status, except for managedFields."""
    metadata = {name: value for name, value in old["metadata"].items() if name != "managedFields"}
    if "managedFields" in new["metadata"]:
        metadata["managedFields"] = new["metadata"]["managedFields"]
    new["metadata"] = metadata


STRATEGY: Final = Strategy(
    resets=OWN_STATUS, generation=SPEC, first_generation=1, prepare_update={"status": _keep_metadata}
)


def _check_conditions(conditions: Sequence[ReadOnlyTree] | None, path: Path) -> Iterator[FieldError]:
    seen = set()
    for index, condition in enumerate(conditions or ()):
        field_path, kind = path.index(index).child("type"), condition.get("type", "")
        if kind in seen:
            yield errors.duplicate(field_path, kind)
        seen.add(kind)
        if not kind:
            yield errors.required(field_path)


update_status: Final[Update] = validation.part(field("conditions", _check_conditions), "status")


# --- specs

_SHARES: Final = require_that(lambda shares: shares >= 0, "must be a non-negative integer")
_PERCENT: Final = between(0, 100)
_COUNT: Final = require_that(lambda count: count > 0, "must be positive")
_MAX_QUEUES: Final = 10_000_000
_MAX_ENTROPY_BITS: Final = 60


def _hand_problem(hand: int, queues: int) -> str:
    """Return the problem of a hand size, or an empty string. Larger hands and decks need more bits of the hash."""
    if hand <= 0:
        return "must be positive"
    if hand > queues:
        return f"should not be greater than queues ({queues})"
    if math.ceil(math.log2(queues) * hand) > _MAX_ENTROPY_BITS:
        decks = f"deckSize {queues} and handSize {hand}"
        return f"required entropy bits of {decks} should not be greater than {_MAX_ENTROPY_BITS}"
    return ""


def _check_hand(queuing: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
    hand = queuing.get("handSize", 0)
    problem = _hand_problem(hand, queuing.get("queues", 0))
    return (errors.invalid(path.child("handSize"), hand, problem),) if problem else ()


_QUEUING: Final = all_of(
    field("queueLengthLimit", _COUNT, absent=0),
    field(
        "queues",
        _COUNT,
        require_that(lambda queues: queues <= _MAX_QUEUES, f"must not be greater than {_MAX_QUEUES}"),
        absent=0,
    ),
    _check_hand,
)

_RESPONSES: Final[Mapping[str, Check]] = {
    "Queue": require(
        "queuing", _QUEUING, detail="must not be empty if limited.limitResponse.type is Limited"
    ),
    "Reject": pointer("queuing", refuse_any("must be nil if limited.limitResponse.type is not Limited")),
}


def _check_by_type(checks: Mapping[str, Check]) -> Check:
    def check(struct: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
        kind = struct.get("type", "")
        return (
            checks[kind](struct, path) if kind in checks else require("type", one_of(*checks))(struct, path)
        )

    return check


_LENDABLE: Final = pointer("lendablePercent", _PERCENT)
_LIMITED: Final = all_of(
    field("nominalConcurrencyShares", _SHARES, absent=0),
    field("limitResponse", _check_by_type(_RESPONSES), absent={}),
    _LENDABLE,
    pointer(
        "borrowingLimitPercent",
        require_that(lambda percent: percent >= 0, "if specified, must be a non-negative integer"),
    ),
)
_LEVELS: Final[Mapping[str, Check]] = {
    "Exempt": all_of(
        pointer("limited", refuse_any("must be nil if the type is not Limited")),
        pointer("exempt", field("nominalConcurrencyShares", _SHARES, absent=0), _LENDABLE),
    ),
    "Limited": all_of(
        pointer("exempt", refuse_any("must be nil if the type is Limited")),
        lambda spec, path: (
            ()
            if spec.get("limited") is not None
            else (errors.required(path.child("limited"), "must not be empty when type is Limited"),)
        ),
        pointer("limited", _LIMITED),
    ),
}
_LEVEL: Final = _check_by_type(_LEVELS)


def _create(tree: ReadOnlyTree) -> Iterator[FieldError]:
    spec, path = validation.get_struct(tree, "spec"), ROOT.child("spec")
    type_ = spec.get("type", "")
    if (meta.name(tree) == EXEMPT) != (type_ == "Exempt"):
        problem = "must be 'Exempt' if and only if `name` is 'exempt'"
        yield errors.invalid(path.child("type"), type_, problem)
    yield from _LEVEL(spec, path)


# --- declared rules

_TYPE, _RESPONSE_TYPE = "spec.type", "spec.limited.limitResponse.type"
_UNIONS: Final = (
    ("spec", {"exempt": "Exempt", "limited": "Limited"}),
    ("spec.limited.limitResponse", {"queuing": "Queue"}),
)
"""Unions: the path of the struct, and for each member the type that has it."""


def _check_members(new: ReadOnlyTree, old: ReadOnlyTree | None) -> Iterator[FieldError]:
    """Check members of an unknown type, which the rules by hand accept, and the fields of a forbidden member."""
    for struct_path, members in _UNIONS:
        struct = meta.value_at(new, struct_path.split(".")) or {}
        old_struct = meta.value_at(old, struct_path.split(".")) or {}
        for name, type_ in members.items():
            is_unchanged = all(struct.get(each) == old_struct.get(each) for each in (name, "type"))
            if struct.get(name) is not None and struct.get("type") != type_ and not is_unchanged:
                yield errors.forbidden(ROOT.child(*struct_path.split("."), name), "")
                if name == "limited":
                    yield from _check_forbidden_response(struct[name].get("limitResponse") or {})


def _check_forbidden_response(response: ReadOnlyTree) -> Iterator[FieldError]:
    if not response.get("type"):
        yield errors.required(ROOT.child(*_RESPONSE_TYPE.split(".")), "")
    elif response["type"] == "Queue" and response.get("queuing") is None:
        yield errors.required(ROOT.child(*_UNIONS[1][0].split("."), "queuing"), "")


_DECLARED: Final = DeclaredRules(
    forbidden("spec.exempt", discriminator=_TYPE),
    forbidden("spec.limited", discriminator=_TYPE),
    required("spec.limited", discriminator=_TYPE),
    required(_TYPE),
    forbidden("spec.limited.limitResponse.queuing", discriminator=_RESPONSE_TYPE),
    required("spec.limited.limitResponse.queuing", discriminator=_RESPONSE_TYPE),
    required(_RESPONSE_TYPE),
    additional=_check_members,
)


# --- columns


def _cells(level: Tree, now: datetime) -> list[Any]:
    limited = cells.part(level, "spec", "limited")
    queuing = cells.part(limited, "limitResponse", "queuing")
    return [
        meta.name(level),
        text(level, "spec", "type"),
        _number_or_none(limited, "nominalConcurrencyShares"),
        _number_or_none(queuing, "queues"),
        _number_or_none(queuing, "handSize"),
        _number_or_none(queuing, "queueLengthLimit"),
        age(level, now),
    ]


def _number_or_none(struct: Any, name: str) -> int | str:
    return "<none>" if struct is None else number(struct, name)


KIND: Final = Kind(
    resource=Resource(
        group="flowcontrol.apiserver.k8s.io",
        version="v1",
        name="prioritylevelconfigurations",
        kind="PriorityLevelConfiguration",
        namespaced=False,
        subresources=(STATUS,),
    ),
    strategy=STRATEGY,
    defaults=defaults_table(
        "io.k8s.api.flowcontrol.v1",
        {
            "ExemptPriorityLevelConfiguration": {"nominalConcurrencyShares": 0, "lendablePercent": 0},
            "LimitedPriorityLevelConfiguration": {"nominalConcurrencyShares": 30, "lendablePercent": 0},
            "QueuingConfiguration": {"queues": 64, "handSize": 8, "queueLengthLimit": 50},
        },
    ),
    validation=Validation(
        repeated_checks=validation.NO_CHECKS,
        silent=frozenset({"status"}),
        create=_create,
        update=validation.as_created(_create, namespaced=False),
        subresources={"status": update_status},
        declared=_DECLARED,
    ),
    printer=Printer(
        columns=(
            NAME,
            Column(name="Type"),
            Column(name="NominalConcurrencyShares"),
            Column(name="Queues"),
            Column(name="HandSize"),
            Column(name="QueueLengthLimit"),
            AGE_COLUMN,
        ),
        cells=_cells,
    ),
)
