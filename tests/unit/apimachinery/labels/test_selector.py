import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockube.apimachinery import labels
from mockube.apimachinery.labels import EVERYTHING, NOTHING, Operator, Selector, SelectorError, require
from mockube.apimachinery.paths import ROOT
from tests.support.hostile.doubling import check_linear

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
            id="empty set of values",
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
        pytest.param(Operator.DOES_NOT_EXIST, [], {None}, id="key must not exist"),
        pytest.param(Operator.GREATER_THAN, ["1"], {"2", "03"}, id="greater than"),
        pytest.param(Operator.LESS_THAN, ["3"], {"1", "2"}, id="less than"),
    ],
)
def test_compiled_requirement_matches(operator, values, matching):
    test = require("k", operator, values).compile()
    values = ["", "1", "2", "03", "x"]
    labels = {value: {"k": value, "other": "1"} for value in values} | {None: {"other": "1"}}
    assert {value for value, of in labels.items() if test(of)} == matching


@pytest.mark.parametrize(
    ("text", "matching"),
    [
        pytest.param("", ["web", "api", "bare"], id="everything"),
        pytest.param("app=web", ["web"], id="one"),
        pytest.param("app,tier!=front", ["api"], id="two"),
        pytest.param("app in (web,api),tier,!canary", ["web", "api"], id="three"),
        pytest.param("app=web,tier=back", [], id="none"),
    ],
)
def test_label_selector_matches_labels(text, matching):
    objects = {"web": {"app": "web", "tier": "front"}, "api": {"app": "api", "tier": "back"}, "bare": {}}
    selector = labels.parse(text)
    assert [name for name, of in objects.items() if selector.matches(of)] == matching


def test_everything_matches_and_nothing_does_not():
    assert EVERYTHING.matches({})
    assert not NOTHING.matches({})
    assert (EVERYTHING.empty, NOTHING.empty) == (True, False)
    assert EVERYTHING != NOTHING
    assert (str(EVERYTHING), str(NOTHING)) == ("", "")


def test_selectors_are_equal_in_any_order():
    assert labels.parse("a=1,b in (3,2)") == labels.parse("b in (2,3),a=1")
    assert hash(labels.parse("a,b")) == hash(labels.parse("b,a"))
    assert labels.parse("a=1") != labels.parse("a=2")
    assert labels.parse("") is EVERYTHING


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("a=1", "1", id="equals"),
        pytest.param("a==1", "1", id="double equals"),
        pytest.param("b,a in (1)", "1", id="in one"),
        pytest.param("a in (1,2)", None, id="in two"),
        pytest.param("a!=1", None, id="not equals"),
        pytest.param("b=1", None, id="another key"),
    ],
)
def test_requires_exact_match(text, value):
    assert labels.parse(text).requires_exact_match("a") == value


def test_from_set_makes_equality_requirements():
    assert labels.from_set({"b": "2", "a": "1"}) == labels.parse("a=1,b=2")
    assert labels.from_set({}) == EVERYTHING


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        pytest.param({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2", id="labels"),
        pytest.param(
            {
                "matchLabels": {"a": "1"},
                "matchExpressions": [
                    {"key": "d", "operator": "In", "values": ["2", "1"]},
                    {"key": "c", "operator": "NotIn", "values": ["1"]},
                    {"key": "b", "operator": "Exists"},
                    {"key": "e", "operator": "DoesNotExist", "values": []},
                ],
            },
            "a=1,b,c notin (1),d in (1,2),!e",
            id="labels and expressions",
        ),
    ],
)
def test_from_label_selector_prints_as_text(selector, text):
    assert str(labels.from_label_selector(selector)) == text


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(None, NOTHING, id="absent"),
        pytest.param({}, EVERYTHING, id="empty"),
        pytest.param({"matchLabels": None, "matchExpressions": []}, EVERYTHING, id="empty parts"),
    ],
)
def test_absent_selector_matches_nothing_and_empty_matches_everything(selector, expected):
    assert labels.from_label_selector(selector) is expected


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
            '"Gt" is not a valid label selector operator',
            id="operator",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "a"}]},
            '"" is not a valid label selector operator',
            id="no operator",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "In"}]},
            "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty",
            id="no values",
        ),
        pytest.param(
            {"matchLabels": {"a": "x" * 64}},
            f'values[0][a]: Invalid value: "{"x" * 64}": must be no more than 63 bytes',
            id="label's value",
        ),
    ],
)
def test_from_label_selector_refuses(selector, message):
    with pytest.raises(SelectorError) as refused:
        labels.from_label_selector(selector)
    assert str(refused.value) == message


@pytest.mark.thorough
def test_selector_with_5000_requirements_is_evaluated():
    text = ",".join(f"k{number}" for number in range(5000))
    assert not labels.parse(text).matches({})


def test_selector_is_immutable():
    with pytest.raises(AttributeError):
        EVERYTHING.matches_nothing = True
    assert repr(Selector()) == "Selector(requirements=(), matches_nothing=False)"


_KEYS = st.sampled_from(["a", "b", "c", "d"])
_REQUIREMENTS = st.lists(
    st.one_of(
        st.builds(lambda key, value: f"{key}={value}", _KEYS, st.sampled_from("123")),
        st.builds(lambda key, value: f"{key}!={value}", _KEYS, st.sampled_from("123")),
        st.builds(lambda key, values: f"{key} in ({','.join(values)})", _KEYS, st.lists(st.sampled_from("123"), min_size=1)),
        st.builds(lambda key, values: f"{key} notin ({','.join(values)})", _KEYS, st.lists(st.sampled_from("123"), min_size=1)),
        st.builds(lambda key, bound: f"{key}>{bound}", _KEYS, st.integers(0, 3)),
        st.builds(lambda key, bound: f"{key}<{bound}", _KEYS, st.integers(1, 4)),
        st.builds(lambda key: key, _KEYS),
        st.builds(lambda key: f"!{key}", _KEYS),
    ),
    min_size=1,
    max_size=3,
)  # fmt: skip


@given(_REQUIREMENTS, st.dictionaries(_KEYS, st.sampled_from("123")))
def test_many_requirements_match_like_each_of_them(requirements, given_labels):
    few, many = labels.parse(",".join(requirements)), labels.parse(",".join(requirements * 20))
    assert many.matches(given_labels) == few.matches(given_labels)


@pytest.mark.timed
def test_many_requirements_take_time_of_few():
    has = {"app": "a"}
    check_linear(
        lambda size: labels.parse(",".join(f"k{number}!=v" for number in range(size))),
        lambda selector: [selector.matches(has) for _ in range(10_000)],
        2000,
    )
