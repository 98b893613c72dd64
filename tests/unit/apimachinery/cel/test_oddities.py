"""Unusual values and errors of cel-go and Kubernetes' libraries, recorded from a real server."""

import pytest

from mockube.apimachinery.cel import types
from mockube.apimachinery.cel.environment import Environment
from mockube.apimachinery.cel.program import ProgramError
from mockube.apimachinery.cel.values import CelError, Duration, Timestamp

SELF = {"l": [3, 1, 2], "u": Duration(5), "d": Timestamp(7), "s": "text"}
VARIABLES = {
    "l": types.list_of(types.INT),
    "u": types.DURATION,
    "d": types.TIMESTAMP,
    "s": types.STRING,
}
NO_LIST = "internal error: interface conversion: *types.Err is not traits.Lister: missing method Add"
NO_INTEGER = "cannot convert value to integer"
ZEROS = "0" * 5000
VALUES = [
    ("quantity('1k').isInteger()", True),
    ("quantity('1Gi').add(quantity('1Ki')).isInteger()", True),
    ("quantity('1.5Gi').isInteger()", False),
    ("quantity('1000m').isInteger()", False),
    ("quantity('1.0').isInteger()", False),
    ("quantity('1Ei').isInteger()", False),
    ("quantity('9223372036854775807').isInteger()", False),
    ("quantity('1m').add(quantity('999m')).isInteger()", False),
    ("quantity('1.5Gi').sub(1).isInteger()", False),
    ("quantity('3').sub(quantity('1').add(1)).asInteger()", 1),
    ("quantity('9e18').add(quantity('9e18')).isInteger()", False),
    ("quantity('-1.9').asApproximateFloat()", -1.9000000000000001),
    ("quantity('1234567890123456789.123').asApproximateFloat()", 1.234567890123457e18),
    ("quantity('1e400').asApproximateFloat()", float("inf")),
    ("quantity('1').add(1) == quantity('2')", True),
    ("[quantity('2')] == [quantity('1').add(1)]", True),
    ("{'a': quantity('2')} == {'a': quantity('1').add(1)}", True),
    ("quantity('2') in [quantity('1').add(1)]", False),
    ("[quantity('2')].indexOf(quantity('1').add(1))", -1),
    ("string(cidr('10.1.2.3/8').masked())", "10.0.0.0/8"),
    ("cidr('fd00::1/64').masked().prefixLength()", 64),
    ("size({duration('1s'): 1, duration('1000ms'): 2})", 1),
    ("size({l: 1, l + [4]: 2})", 2),
    ("u in {u: 1}", True),
    ("d in {d: 1}", True),
    ("l in {l: 1}", False),
    ("true || [l[9]].sort() == l", True),
    ("{l: 1}.map(k, k)", [[3, 1, 2]]),
    pytest.param(f"{ZEROS}7", 7, id="decimal with leading zeros"),
    pytest.param(f"-{ZEROS}7", -7, id="negative decimal with leading zeros"),
    pytest.param(f"0x{ZEROS}a", 10, id="hexadecimal with leading zeros"),
    pytest.param(f"-0x{ZEROS}a", -10, id="negative hexadecimal with leading zeros"),
    pytest.param(f"{ZEROS}7u", 7, id="unsigned with leading zeros"),
    pytest.param(ZEROS, 0, id="zero with leading zeros"),
]
ERRORS = [
    ("quantity('1.5Gi').asInteger()", NO_INTEGER),
    ("quantity('1000m').asInteger()", NO_INTEGER),
    ("quantity('2') == quantity('1').add(1)", "no such overload"),
    ("[l[9]].sort()", NO_LIST),
    ("[l[9]].distinct()", NO_LIST),
    ("[1, 2].sortBy(v, l[9])", NO_LIST),
    ("[l[9]].sortBy(v, -v)", NO_LIST),
    ("[l[9]].sort() == l || true", NO_LIST),
    ("[[1]].flatten(l[9])", "internal error: interface conversion: ref.Val is *types.Err, not types.Int"),
    ("[l[9]].slice(0, 1)", "index out of bounds: 9"),
    ("{bytes(s): 1} == {} || true", "internal error: runtime error: hash of unhashable type types.Bytes"),
    ("{u: 2}[u]", "invalid qualifier type: types.Duration"),
    (
        "url('2026-01-02T03:04:05Z').getHost()",
        'URL parse error during conversion from string: parse "2026-01-02T03:04:05Z": invalid URI for request',
    ),
]


def evaluate(expression):
    return Environment(VARIABLES).compile(expression).program.evaluate(SELF)[0]


@pytest.mark.parametrize(("expression", "value"), VALUES)
def test_expression_has_value_of_real_server(expression, value):
    assert evaluate(expression) == value


@pytest.mark.parametrize(("expression", "message"), ERRORS)
def test_expression_fails_as_on_real_server(expression, message):
    with pytest.raises(CelError) as raised:
        evaluate(expression)
    assert str(raised.value) == message


def test_constant_map_with_unhashable_key_does_not_compile():
    with pytest.raises(ProgramError, match="hash of unhashable type"):
        Environment({}).compile("{b'a': 1}")
