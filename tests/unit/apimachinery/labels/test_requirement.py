import pytest

from mockube.apimachinery.labels import Operator, SelectorError, require
from mockube.apimachinery.paths import ROOT

KEY_PROBLEM = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("key", "operator", "values", "message"),
    [
        pytest.param("a b", Operator.EXISTS, [], f'key: Invalid value: "a b": {KEY_PROBLEM}', id="key"),
        pytest.param(
            "a",
            Operator.IN,
            [],
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            id="in nothing",
        ),
        pytest.param(
            "a",
            Operator.EQUALS,
            ["b", "c"],
            'values: Invalid value: ["b","c"]: exact-match compatibility requires one single value',
            id="equals two",
        ),
        pytest.param(
            "a",
            Operator.EXISTS,
            ["b"],
            'values: Invalid value: ["b"]: values set must be empty for exists and does not exist',
            id="exists with a value",
        ),
        pytest.param(
            "a",
            Operator.LESS_THAN,
            [],
            "values: Invalid value: null: for 'Gt', 'Lt' operators, exactly one value is required",
            id="less than nothing",
        ),
        pytest.param(
            "a",
            Operator.GREATER_THAN,
            ["1", "x"],
            "[values: Invalid value: [\"1\",\"x\"]: for 'Gt', 'Lt' operators, exactly one value is required, "
            "values[1]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer]",
            id="greater than two",
        ),
        pytest.param(
            "a",
            Operator.NOT_IN,
            ["b", "c" * 64],
            f'values[1][a]: Invalid value: "{"c" * 64}": must be no more than 63 bytes',
            id="value",
        ),
    ],
)
def test_require_refuses(key, operator, values, message):
    with pytest.raises(SelectorError) as refused:
        require(key, operator, values)
    assert str(refused.value) == message


def test_requirement_errors_contain_path():
    with pytest.raises(SelectorError, match=r"^spec\.selector\.values: Invalid value"):
        require("a", Operator.IN, path=ROOT.child("spec", "selector"))


@pytest.mark.parametrize(
    ("operator", "values", "matching"),
    [
        pytest.param(Operator.EQUALS, ["1"], {"1"}, id="equals"),
        pytest.param(Operator.DOUBLE_EQUALS, ["1"], {"1"}, id="double equals"),
        pytest.param(Operator.NOT_EQUALS, ["1"], {"", "2", "03", "x", None}, id="not equals"),
        pytest.param(Operator.IN, ["1", ""], {"", "1"}, id="in"),
        pytest.param(Operator.NOT_IN, ["1", ""], {"2", "03", "x", None}, id="not in"),
        pytest.param(Operator.EXISTS, [], {"", "1", "2", "03", "x"}, id="exists"),
        pytest.param(Operator.DOES_NOT_EXIST, [], {None}, id="does not exist"),
        pytest.param(Operator.GREATER_THAN, ["1"], {"2", "03"}, id="greater than"),
        pytest.param(Operator.LESS_THAN, ["3"], {"1", "2"}, id="less than"),
    ],
)
def test_compiled_requirement_matches(operator, values, matching):
    test = require("k", operator, values).compile()
    values = ["", "1", "2", "03", "x"]
    labels = {value: {"k": value, "other": "1"} for value in values} | {None: {"other": "1"}}
    assert {value for value, of in labels.items() if test(of)} == matching
