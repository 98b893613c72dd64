"""CEL attributes: a variable and its qualifiers (fields, indexes), with their cost.

A frame is a list of the cost so far, the cost limit, and the values of the variables.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from .values import (
    NONE,
    CelError,
    CostExceeded,
    Duration,
    Opaque,
    Optional,
    Timestamp,
    Uint,
    format_value,
    map_key,
    missing_key,
    type_name,
)

Frame = list[Any]
Run = Callable[[Frame], Any]
FIRST_VARIABLE = 2


class FailedStep:
    """The value of an accumulator whose step failed: `||` and `&&` may still absorb the error."""

    __slots__ = ("error",)

    def __init__(self, error: CelError) -> None:
        self.error = error


class LazyValue:
    """The value of a variable that is evaluated on first use."""

    __slots__ = ("run",)

    def __init__(self, run: Run) -> None:
        self.run = run


def load(slot: int) -> Run:
    """Return the function that loads a variable."""
    return lambda frame: frame[slot]


def load_guarded(slot: int) -> Run:
    """Return the function that loads a variable, evaluates a lazy one, and raises the error of a failed step."""

    def load(frame: Frame) -> Any:
        value = frame[slot]
        if type(value) is FailedStep:
            raise value.error
        if type(value) is LazyValue:
            value = frame[slot] = value.run(frame)
        return value

    return load


def check_limit(frame: Frame) -> None:
    if frame[0] > frame[1]:
        raise CostExceeded


class LazyMap:
    """A map whose values are evaluated on first use: the variables of an admission policy."""

    type_name = "kubernetes.variables"

    def find(self, key: Any, /) -> tuple[bool, Any]:
        """Return whether the key exists, and its value."""
        raise NotImplementedError


def find(value: Any, key: Any) -> tuple[bool, Any]:
    """Return whether a key or index exists, and its value; raise CelError for an unsupported type of index."""
    if isinstance(value, dict):
        if type(key) is not str:
            if type(key) in UNSUPPORTED_QUALIFIERS:
                raise CelError(f"invalid qualifier type: types.{UNSUPPORTED_QUALIFIERS[type(key)]}")
            key = map_key(key)
        return (True, value[key]) if key in value else (False, None)
    if isinstance(value, list):
        index = _index(key)
        return (True, value[index]) if 0 <= index < len(value) else (False, None)
    if isinstance(value, LazyMap):
        return value.find(key)
    return False, None


def _index(key: Any) -> int:
    kind = type(key)
    if kind is int or kind is Uint:
        return int(key)
    if kind is float:
        if key.is_integer():
            return int(key)
        raise CelError(f"unsupported index value {format_value(key)} in list")
    raise CelError(f"unsupported index type '{type_name(key)}' in list")


def qualify(value: Any, key: Any) -> Any:
    """Return the value of a key or index; raise cel-go's error if it does not exist."""
    is_present, item = find(value, key)
    if is_present:
        return item
    if isinstance(value, list):
        raise CelError(f"index out of bounds: {format_value(key)}")
    if isinstance(value, Opaque) and isinstance(key, str):
        return value.select(key)
    raise missing_key(key)


UNSUPPORTED_QUALIFIERS: Final[Mapping[type, str]] = {
    bytes: "Bytes",
    type(None): "Null",
    Duration: "Duration",
    Timestamp: "Timestamp",
}
"""Types that cannot be qualifiers, with cel-go's names for them."""


class Qualifier(NamedTuple):
    """A key or index that is selected from a value."""

    key: Any
    run: Run | None = None
    """The function that evaluates a key that is not constant. It adds its own cost."""
    optional: bool = False


class Attribute(Struct, frozen=True):
    """A variable, or the result of an expression, and the qualifiers that are applied to it."""

    base: Run
    qualifiers: tuple[Qualifier, ...] = ()
    slot: int | None = None
    """The slot of a variable that is not guarded."""
    branches: tuple[Run, "Attribute", "Attribute"] | None = None
    """The condition and both operands of a conditional: qualifiers are applied to both operands."""
    test_only: bool = False
    """Whether the attribute is a presence test of its last qualifier."""

    def select(self, qualifier: Qualifier) -> "Attribute":
        if self.branches is not None:
            condition, if_true, if_false = self.branches
            return replace(self, branches=(condition, if_true.select(qualifier), if_false.select(qualifier)))
        return replace(self, qualifiers=(*self.qualifiers, qualifier))

    def presence_test(self) -> "Attribute":
        """Return the attribute that tests whether the last qualifier's key exists."""
        if self.branches is not None:
            condition, if_true, if_false = self.branches
            return replace(self, branches=(condition, if_true.presence_test(), if_false.presence_test()))
        return replace(self, test_only=True)

    def run(self, *, cost: int) -> Run:
        """Return the function that evaluates the attribute. `cost` excludes the qualifiers, which cost one each."""
        if self.branches is not None:
            return _run_branches(*self.branches)
        keys = self.qualifiers
        if self.test_only:
            return _run_presence_test(self.base, keys, max(cost - 1, 0))
        if any(key.run is not None or key.optional for key in keys):
            return _run_qualifiers(self.base, keys, cost)
        names = tuple(key.key for key in keys)
        if self.slot is None:
            return _run_keys(self.base, names, cost)
        if all(type(name) is str for name in names):
            return _run_variable(self.slot, names, cost)
        return _run_keys(self.base, names, cost)


def _run_variable(slot: int, names: tuple[str, ...], cost: int) -> Run:
    total = cost + len(names)

    def variable(frame: Frame) -> Any:
        frame[0] += cost
        value = frame[slot]
        if type(value) is Optional:
            return _select_optional(frame, value, names)
        return value

    def selection(frame: Frame) -> Any:
        frame[0] += total
        value = frame[slot]
        if type(value) is Optional:
            return _select_optional(frame, value, names)
        for name in names:
            if type(value) is dict:
                if name not in value:
                    raise missing_key(name)
                value = value[name]
            else:
                value = qualify(value, name)
        return value

    return selection if names else variable


def _run_keys(base: Run, names: tuple[Any, ...], cost: int) -> Run:
    def keys(frame: Frame) -> Any:
        value = base(frame)
        frame[0] += cost
        if type(value) is Optional and names:
            return _select_optional(frame, value, names)
        for name in names:
            frame[0] += 1
            value = qualify(value, name)
        return value

    return keys


def _select_optional(frame: Frame, value: Optional, names: tuple[Any, ...]) -> Any:
    if not names or not value.present:
        return value
    item = value.value
    for name in names:
        is_present, item = find(item, name)
        if not is_present:
            return NONE
        frame[0] += 1
    return Optional(item)


def _run_qualifiers(base: Run, qualifiers: tuple[Qualifier, ...], cost: int) -> Run:
    def run_general(frame: Frame) -> Any:
        value = base(frame)
        frame[0] += cost
        optional = type(value) is Optional
        if optional:
            if not value.present:
                return value
            value = value.value
        for key, run, is_optional in qualifiers:
            optional = optional or is_optional
            item = run(frame) if run is not None else key
            if not optional:
                frame[0] += 1
                value = qualify(value, item)
                continue
            is_present, value = find(value, item)
            if not is_present:
                return NONE
            frame[0] += 1
        return Optional(value) if optional else value

    return run_general


def _run_presence_test(base: Run, qualifiers: tuple[Qualifier, ...], cost: int) -> Run:
    """Return the function that evaluates a presence test."""
    operand = _run_qualifiers(base, qualifiers[:-1], cost) if len(qualifiers) > 1 else base
    own_cost = cost if len(qualifiers) == 1 else 0
    last_key = qualifiers[-1].key

    def test(frame: Frame) -> bool:
        value = operand(frame)
        frame[0] += 1 + own_cost
        if type(value) is Optional:
            if not value.present:
                return False
            value = value.value
        return find(value, last_key)[0]

    return test


def _run_branches(condition: Run, if_true: Attribute, if_false: Attribute) -> Run:
    run_true, run_false = if_true.run(cost=0), if_false.run(cost=0)

    def conditional(frame: Frame) -> Any:
        outcome = condition(frame)
        if outcome is True:
            return run_true(frame)
        if outcome is False:
            return run_false(frame)
        raise CelError("no such overload")

    return conditional
