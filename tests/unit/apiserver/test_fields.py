import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mockube.apiserver import fields
from mockube.apiserver.fields import FieldSelectorError, Selector, Term

TERMS = st.builds(
    Term, st.text("abc.", min_size=1, max_size=4), st.text(r"ab\,=! é", max_size=5), st.booleans()
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        pytest.param("", "", id="empty"),
        pytest.param(",,", "", id="commas"),
        pytest.param("=", "", id="term without field and value"),
        pytest.param("a=b", "a=b", id="equals"),
        pytest.param("a==b", "a=b", id="double equals"),
        pytest.param("a!=b", "a!=b", id="not equals"),
        pytest.param("a=", "a=", id="empty value"),
        pytest.param("=a", "=a", id="no field"),
        pytest.param("c=1,a=2,", "a=2,c=1", id="sorted"),
        pytest.param(r"a=x\,y\=z\\", r"a=x\,y\=z\\", id="escapes"),
        pytest.param("a!b=c", "a!b=c", id="exclamation mark in a field"),
    ],
)
def test_field_selector_is_parsed_to_canonical_text(text, canonical):
    assert str(fields.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "metadata.name",
            "invalid selector: 'metadata.name'; can't understand 'metadata.name'",
            id="no operator",
        ),
        pytest.param(
            "b=1,a", "invalid selector: 'b=1,a'; can't understand 'a'", id="no operator in one term"
        ),
        pytest.param(r"a=\x", r"invalid field selector: invalid escape sequence: \x", id="escape"),
        pytest.param(
            "a=b\\", "invalid field selector: invalid escape sequence: \\", id="backslash at the end"
        ),
        pytest.param(
            "a=b=c", "invalid field selector: unescaped character in value: 61", id="equals in a value"
        ),
    ],
)
def test_parse_refuses(text, message):
    with pytest.raises(FieldSelectorError) as refused:
        fields.parse(text)
    assert str(refused.value) == message


def test_comma_in_value_must_be_escaped():
    with pytest.raises(FieldSelectorError, match="unescaped character in value: 44"):
        fields.unescape("a,b")


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        pytest.param("", True, id="everything"),
        pytest.param("status.phase=Running", True, id="equal"),
        pytest.param("status.phase=Running,spec.nodeName=n1", False, id="one is not"),
        pytest.param("spec.nodeName=", True, id="absent is empty"),
        pytest.param("spec.nodeName!=", False, id="absent is not otherwise"),
        pytest.param("status.phase!=Pending", True, id="not equal"),
    ],
)
def test_field_selector_matches_fields(text, matches):
    assert fields.parse(text).matches({"status.phase": "Running"}) is matches


def test_empty_field_selector_matches_everything():
    assert fields.parse("").empty
    assert fields.parse("") == Selector()
    assert not fields.parse("a=").empty


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("b=2,a=1", "1", id="equals"),
        pytest.param("a=", "", id="empty value"),
        pytest.param("a!=1", None, id="not equals"),
        pytest.param("b=1", None, id="another field"),
    ],
)
def test_requires_exact_match(text, value):
    assert fields.parse(text).requires_exact_match("a") == value


@given(st.text())
def test_escaped_value_is_unescaped(value):
    assert fields.unescape(fields.escape(value)) == value


@given(st.lists(TERMS))
def test_printed_field_selector_parses_to_itself(terms):
    selector = Selector(tuple(terms))
    read = fields.parse(str(selector))
    assert sorted(map(str, read.terms)) == sorted(map(str, terms))
    assert fields.parse(str(read)) == read


@given(st.text(r"ab.=!,\ ", max_size=12) | st.text())
@example(r"==!\=,=.")  # terms are in the order of their text, and `==` is printed as `=`
def test_any_field_selector_text_is_parsed_or_refused(text):
    try:
        selector = fields.parse(text)
    except FieldSelectorError:
        return
    read = fields.parse(str(selector))
    assert sorted(map(str, read.terms)) == sorted(map(str, selector.terms))
    assert fields.parse(str(read)) == read
