import sys

import orjson
import pytest

from mockube.apimachinery.schema.document import Literal, Members, parse


def test_parsed_document_keeps_duplicates_and_literals():
    read = parse(b'{"a": 1.50, "a": {"b": [-0]}}')
    assert read == Members([("a", Literal("1.50")), ("a", Members([("b", [Literal("-0")])]))])
    assert type(read) is Members
    assert type(read[0][1]) is Literal


def python_calls(text):
    events = []
    sys.setprofile(lambda _frame, event, _about: events.append(event))
    try:
        parse(text)
    finally:
        sys.setprofile(None)
    return events.count("call")


def test_parsing_yields_to_other_threads_at_each_number():
    assert python_calls(b"[1, 2.5, 3]") == python_calls(b"[]") + 3


def test_document_without_numbers_is_plain():
    assert parse(b'["a", true, null, {}]') == ["a", True, None, Members()]


@pytest.mark.parametrize(
    "text",
    ["0", "-1", "1.0", "1e3", "9223372036854775807", "18446744073709551615", "18446744073709551616", "1e-7"],
)
def test_literal_equals_number_of_orjson(text):
    number = parse(text.encode()).number()
    assert (number, type(number)) == (orjson.loads(text), type(orjson.loads(text)))


def test_number_with_many_digits_is_a_float():
    assert parse(b"1" * 5000).number() == float("inf")
