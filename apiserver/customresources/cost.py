"""Estimate the cost of a schema's checks from the schema alone: for each byte of an object, and for their preparation.

The estimates are seldom too low: work that may take long runs in a thread. The unit is the time that a schema without
patterns takes to check one byte.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from mockube.apimachinery.regexp.errors import RegexpError
from mockube.apimachinery.regexp.matcher import check as pattern_cost
from mockube.apiserver.kinds.jsonschema.schema import Schema, properties

INSTRUCTIONS: Final = 300
"""Instructions of a pattern for one unit of cost. In the worst case all are tried at each byte, for 2 ns each."""
FIELDS: Final = 4
"""Required or defaulted fields for one unit of cost; an empty object of two bytes may have many."""
DEFAULT_BYTES: Final = 400
NODE: Final = 100
"""The cost of building the check of one schema that is part of another."""


class Cost(NamedTuple):
    byte: int
    """The cost of checking one byte of an object."""
    preparation: int
    """The cost of building the checks and compiling the patterns."""


def cost_of(schema: Schema) -> Cost:
    totals = _Totals()
    byte = totals.highest_cost(schema, repeated=False)
    return Cost(byte=1 + byte, preparation=NODE * totals.schemas + totals.instructions)


class _Totals:
    def __init__(self) -> None:
        self.schemas = 0
        self.instructions = 0

    def highest_cost(self, schema: Schema, *, repeated: bool) -> int:
        """Return the highest cost of one byte: parts share the bytes of an object, alternatives all check the same bytes."""
        self.schemas += 1
        instructions = _instructions(schema)
        self.instructions += instructions
        parts = [self.highest_cost(inner, repeated=repeated) for inner in properties(schema).values()]
        parts += [self.highest_cost(inner, repeated=True) for inner in _element_schemas(schema)]
        alternatives = [1 + self.highest_cost(inner, repeated=repeated) for inner in _alternatives(schema)]
        own = -(-instructions // INSTRUCTIONS) if instructions > INSTRUCTIONS else 0
        if repeated:
            own += _fields(schema)
        return own + sum(alternatives) + max(parts, default=0)


def _instructions(schema: Schema) -> int:
    pattern = schema.get("pattern")
    if not pattern:
        return 0
    try:
        return pattern_cost(pattern)
    except RegexpError:
        return len(pattern)  # it is parsed for each value


def _fields(schema: Schema) -> int:
    """Return the cost of the required and defaulted fields of an empty object."""
    defaults = [inner["default"] for inner in properties(schema).values() if inner.get("default") is not None]
    demanded = len(schema.get("required") or ()) + len(defaults)
    return demanded // FIELDS + sum(map(_length, defaults)) // DEFAULT_BYTES


def _length(value: Any) -> int:
    """Return the approximate length of a value as JSON."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(len(name) + _length(inner) for name, inner in value.items())
    return 1 + sum(map(_length, value)) if isinstance(value, list) else 1


def _element_schemas(schema: Schema) -> Iterator[Schema]:
    for name in ("additionalProperties", "items"):
        if isinstance(schema.get(name), dict):
            yield schema[name]


def _alternatives(schema: Schema) -> Iterator[Schema]:
    for name in ("allOf", "anyOf", "oneOf"):
        schemas: Sequence[Schema] = schema.get(name) or ()
        yield from schemas
    if schema.get("not") is not None:
        yield schema["not"]
