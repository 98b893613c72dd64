"""Expressions of the Common Expression Language: compiled, estimated and evaluated within a budget."""

from mockube.apimachinery.cel import schema_types, types
from mockube.apimachinery.cel.environment import Environment
from mockube.apimachinery.cel.program import ProgramError
from mockube.apimachinery.cel.source import Issues
from mockube.apimachinery.cel.values import CelError, CostExceeded, format_value
from mockube.apiserver.cel.cost_estimate import estimate_cost
from mockube.apiserver.cel.schema_values import converter
from tests.fuzz import texts
from tests.fuzz.engine import Target

LIMIT = 20_000
MAX_TEXT_LENGTH = 8_000
"""Characters: to compile one takes some 30 µs."""
SCHEMA = {
    "type": "object",
    "properties": {
        "i": {"type": "integer"}, "d": {"type": "number"}, "s": {"type": "string", "maxLength": 20}, "b": {"type": "boolean"},
        "t": {"type": "string", "format": "date-time"}, "u": {"type": "string", "format": "duration"}, "x": {"x-kubernetes-int-or-string": True},
        "l": {"type": "array", "items": {"type": "integer"}}, "m": {"type": "object", "additionalProperties": {"type": "string"}},
        "o": {"type": "object", "properties": {"if": {"type": "string"}, "a-b": {"type": "integer"}}},
    },
}  # fmt: skip
VALUE = {
    "i": 3, "d": 1.5, "s": "abc", "b": True, "t": "2030-01-01T00:00:00Z", "u": "90s", "x": "50%", "l": [1, 2, 3], "m": {"a": "b", "k": ""},
    "o": {"if": "x", "a-b": -1},
}  # fmt: skip
OPERANDS = (
    "self", "self.i", "self.d", "self.s", "self.b", "self.t", "self.u", "self.x", "self.l", "self.m", "self.o.__if__", "self.?n", "free", "free.a",
    "0", "1", "-1", "9223372036854775807", "18446744073709551615u", "0.0", "1e308", "0x1F", "'a'", "r'\\d+'", "b'\\xff'", "'''x'''", "true", "null",
    "[]", "[1, 2]", "{}", "{'a': 1}", "duration('1h')", "timestamp('2030-01-01T00:00:00Z')", "quantity('1Gi')", "ip('10.0.0.1')", "cidr('10.0.0.0/8')",
    "url('http://a/b?c=d')", "semver('1.2.3')", "optional.of(1)", "optional.none()", "'%s %d'.format([self.s, self.i])", "format.dns1123Label()",
    "type(self.i)", "e", "k", "v",
)  # fmt: skip
OPERATORS = (
    " + ", " - ", " * ", " / ", " % ", " == ", " != ", " < ", " >= ", " && ", " || ", " in ", " ? ", " : ", ", ", ".", "[", "]", "(", ")", "!", "-",
    ".?", "[?",
)  # fmt: skip
CALLS = (
    ".all(e, {})", ".exists(e, {})", ".exists_one(e, {})", ".map(e, {})", ".filter(e, {})", ".map(e, e > 0, {})", ".all(k, v, {})",
    ".transformMap(k, v, {})", ".transformList(k, v, {})", ".size()", ".matches({})", ".startsWith({})", ".split({})", ".join({})", ".replace('a', {})",
    ".find({})", ".findAll({})", ".indexOf({})", ".contains({})", ".lowerAscii()", ".sum()", ".min()", ".isSorted()", ".orValue({})", ".optMap(e, {})",
    ".getHours()", ".getDayOfWeek({})", ".sub({})", ".isLessThan({})", ".asInteger()", ".major()", ".family()", ".masked()", ".containsIP({})",
    ".getQuery()", ".validate({})", ".flatten()", ".sort()", ".distinct()",
)  # fmt: skip
FUNCTIONS = ("has({})", "size({})", "string({})", "int({})", "uint({})", "double({})", "bytes({})", "bool({})", "dyn({})", "duration({})", "timestamp({})",
             "quantity({})", "isIP({})", "cidr({})", "semver({})", "sets.contains([1], {})", "cel.bind(e, {}, e)", "type({})")  # fmt: skip

_DECLARED, _STRUCTS = schema_types.name_structs(schema_types.declare(SCHEMA), "selfType")
_ENVIRONMENT = Environment(
    {"self": _DECLARED.type, "free": types.DYN}, schema_types.DeclaredStructs(_STRUCTS)
)
_SELF = converter(SCHEMA)(VALUE)


def _expression(random, depth=0):
    """Mostly a whole expression."""
    if depth > 3 or random.random() < 0.3:
        return random.choice(OPERANDS)

    def inner():
        return _expression(random, depth + 1)

    shape = random.random()
    if shape < 0.4:
        return f"{inner()}{random.choice(OPERATORS)}{inner()}"
    if shape < 0.75:
        return inner() + random.choice(CALLS).format(inner())
    if shape < 0.9:
        return random.choice(FUNCTIONS).format(inner())
    return f"({inner()} ? {inner()} : {inner()})" if shape < 0.95 else f"[{inner()}, {inner()}]"


def _make(random):
    if random.random() < 0.25:
        return texts.join_tokens(random, (*OPERANDS, *OPERATORS, *OPERATORS), maximum=16)[:MAX_TEXT_LENGTH]
    return _expression(random)[:MAX_TEXT_LENGTH]


def _check(text):
    try:
        compiled = _ENVIRONMENT.compile(text)
    except Issues as issues:
        return f"issues: {bool(str(issues))}"
    except ProgramError as error:
        return f"refused: {error}"
    estimate = estimate_cost(compiled.expr, lambda path: schema_types.sizes_of(_DECLARED, path))
    assert 0 <= estimate.low <= estimate.high
    try:
        value, cost = compiled.program.evaluate({"self": _SELF, "free": VALUE}, LIMIT)
    except CelError as error:
        return f"failed: {error}"
    except CostExceeded:
        return "too expensive"
    assert cost <= LIMIT
    format_value(value)
    return f"evaluated: {compiled.type}"


TARGETS = (Target(name="expressions", generate=_make, check=_check),)
