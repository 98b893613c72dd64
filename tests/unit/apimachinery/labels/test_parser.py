import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mockube.apimachinery import labels
from mockube.apimachinery.labels import Operator, Requirement, Selector, SelectorError

KEYS = st.from_regex(
    r"([a-z0-9]{1,5}(\.[a-z0-9]{1,5})?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,5}[A-Za-z0-9])?", fullmatch=True
)
VALUES = st.from_regex(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,5}[A-Za-z0-9])?)?", fullmatch=True)
NUMBERS = st.integers(0, 2**63 - 1).map(str)


def requirements(operators, values):
    return st.builds(Requirement, KEYS, st.sampled_from(operators), values)


REQUIREMENTS = st.one_of(
    requirements([Operator.EXISTS, Operator.DOES_NOT_EXIST], st.just(())),
    requirements(
        [Operator.IN, Operator.NOT_IN], st.lists(VALUES, min_size=1, unique=True).map(sorted).map(tuple)
    ),
    requirements([Operator.EQUALS, Operator.DOUBLE_EQUALS, Operator.NOT_EQUALS], st.tuples(VALUES)),
    requirements([Operator.GREATER_THAN, Operator.LESS_THAN], st.tuples(NUMBERS)),
)
SELECTORS = st.lists(REQUIREMENTS, max_size=4).map(lambda chosen: Selector(tuple(chosen)))


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        pytest.param("", "", id="empty"),
        pytest.param("  \t\r\n", "", id="blank"),
        pytest.param("a=b", "a=b", id="equals"),
        pytest.param("a == b", "a==b", id="double equals"),
        pytest.param("a != b", "a!=b", id="not equals"),
        pytest.param("a=", "a=", id="empty value"),
        pytest.param("a=,b", "a=,b", id="empty value and another term"),
        pytest.param("a>1,b<2", "a>1,b<2", id="bounds"),
        pytest.param("a", "a", id="exists"),
        pytest.param("!a", "!a", id="key must not exist"),
        pytest.param("x in (b,a)", "x in (a,b)", id="in, sorted"),
        pytest.param("x notin(a)", "x notin (a)", id="not in"),
        pytest.param("x in ()", "x in ()", id="in an empty set"),
        pytest.param("x in (,)", "x in ()", id="empty values"),
        pytest.param("x in (a,)", "x in (,a)", id="empty value last"),
        pytest.param("x in (,a)", "x in (,a)", id="empty value first"),
        pytest.param("x in (a,,b)", "x in (,a,b)", id="empty value between"),
        pytest.param("x in (a,a)", "x in (a)", id="duplicate value"),
        pytest.param("in in (in,notin)", "in in (in,notin)", id="operators as key and values"),
        pytest.param("c,b=1,a", "a,b=1,c", id="sorted by key"),
        pytest.param("example.com/a=b", "example.com/a=b", id="key with a domain"),
        pytest.param("a\0", "a", id="NUL at the end"),
        pytest.param("\0a", "", id="NUL at the beginning"),
    ],
)
def test_label_selector_is_parsed_to_canonical_text(text, canonical):
    assert str(labels.parse(text)) == canonical


REQUIREMENT = "unable to parse requirement: "
KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(",", "found ',', expected: !, identifier, or 'end of string'", id="comma"),
        pytest.param("a,", "found '', expected: identifier after ','", id="nothing after a comma"),
        pytest.param("a,=", "found '=', expected: identifier after ','", id="operator after a comma"),
        pytest.param("!a=b", "found '=', expected: ',' or 'end of string'", id="operator after an exclusion"),
        pytest.param("a=b c", "found 'c', expected: ',' or 'end of string'", id="two values"),
        pytest.param("!", f"{REQUIREMENT}found '', expected: identifier", id="exclamation mark without key"),
        pytest.param("!!a", f"{REQUIREMENT}found '!', expected: identifier", id="two exclusions"),
        pytest.param("a===b", f"{REQUIREMENT}found '=', expected: identifier", id="three equals"),
        pytest.param("a=(", f"{REQUIREMENT}found '(', expected: identifier", id="parenthesis as value"),
        pytest.param(
            "a b", f"{REQUIREMENT}found 'b', expected: in, notin, =, ==, !=, gt, lt", id="no operator"
        ),
        pytest.param(
            "a)", f"{REQUIREMENT}found ')', expected: in, notin, =, ==, !=, gt, lt", id="parenthesis"
        ),
        pytest.param("a in b", f"{REQUIREMENT}found 'b' expected: '('", id="set without parenthesis"),
        pytest.param(
            "a in (", f"{REQUIREMENT}found '', expected: ',', ')' or identifier", id="set not begun"
        ),
        pytest.param(
            "a in (=", f"{REQUIREMENT}found '=', expected: ',', ')' or identifier", id="operator in a set"
        ),
        pytest.param("a in (b", f"{REQUIREMENT}found '', expected: ',' or ')'", id="set not ended"),
        pytest.param(
            "a in (b,", f"{REQUIREMENT}found '', expected: ',', or identifier", id="set ends with a comma"
        ),
        pytest.param(
            "a in (b,=)", f"{REQUIREMENT}found '=', expected: ',', or identifier", id="operator after comma"
        ),
        pytest.param(
            "a/b/c=d",
            f'{REQUIREMENT}<nil>: Invalid value: "a/b/c": a valid label key {KEY_RULE} '
            "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
            id="key",
        ),
        pytest.param(
            "all=" + "y" * 64,
            f'{REQUIREMENT}values[0][all]: Invalid value: "{"y" * 64}": must be no more than 63 bytes',
            id="value",
        ),
        pytest.param(
            "a>b",
            f"{REQUIREMENT}values[0]: Invalid value: \"b\": for 'Gt', 'Lt' operators, the value must be an integer",
            id="bound",
        ),
    ],
)
def test_parse_refuses(text, message):
    with pytest.raises(SelectorError) as refused:
        labels.parse(text)
    assert str(refused.value) == message


@given(SELECTORS)
@example(Selector())
def test_printed_label_selector_parses_to_itself(selector):
    read = labels.parse(str(selector))
    assert read == selector
    assert str(read) == str(selector)


@given(st.text(alphabet="ab1/.-=!<>(), \0\n", max_size=20) | st.text())
def test_any_label_selector_text_is_parsed_or_refused(text):
    try:
        selector = labels.parse(text)
    except SelectorError:
        return
    assert labels.parse(str(selector)) == selector
