import pytest

from mockube.apimachinery import gotext


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        pytest.param("plain text", '"plain text"', id="plain"),
        pytest.param('a "b" \\', '"a \\"b\\" \\\\"', id="quotes and backslashes"),
        pytest.param("\a\b\f\n\r\t\v", '"\\a\\b\\f\\n\\r\\t\\v"', id="named escapes"),
        pytest.param("\x00\x7f", '"\\x00\\x7f"', id="other control characters"),
        pytest.param("é世", '"é世"', id="printable beyond ASCII"),
        pytest.param("\u200b", '"\\u200b"', id="unprintable beyond ASCII"),
        pytest.param("\U000e0001", '"\\U000e0001"', id="unprintable beyond the first plane"),
    ],
)
def test_quote_text(text, quoted):
    assert gotext.quote(text) == quoted


def test_quote_bytes_as_go_does():
    assert gotext.quote_bytes('a"\\\né\x7f') == '"a\\"\\\\\\x0a\\xc3\\xa9\x7f"'


@pytest.mark.parametrize(
    ("value", "plain", "json"),
    [
        pytest.param(True, "true", "true", id="true"),
        pytest.param(False, "false", "false", id="false"),
        pytest.param(-7, "-7", "-7", id="integer"),
        pytest.param(0.0, "0", "0", id="zero"),
        pytest.param(1.0, "1", "1", id="whole"),
        pytest.param(0.25, "0.25", "0.25", id="fraction"),
        pytest.param(999999.0, "999999", "999999", id="below a million"),
        pytest.param(1e6, "1e+06", "1000000", id="a million"),
        pytest.param(123456789.0, "1.23456789e+08", "123456789", id="large"),
        pytest.param(1e21, "1e+21", "1e+21", id="large for JSON too"),
        pytest.param(1e-5, "1e-05", "0.00001", id="small"),
        pytest.param(-2.5e-9, "-2.5e-09", "-2.5e-9", id="small for JSON too"),
        pytest.param(1e-100, "1e-100", "1e-100", id="tiny"),
    ],
)
def test_numbers_are_printed_as_go_does(value, plain, json):
    assert gotext.format_v(value) == plain
    assert gotext.marshal(value) == json


@pytest.mark.parametrize(
    ("value", "json"),
    [
        pytest.param(None, "null", id="null"),
        pytest.param("<a&b>\u2028\u2029", '"\\u003ca\\u0026b\\u003e\\u2028\\u2029"', id="HTML"),
        pytest.param('"\n', '"\\"\\n"', id="escapes"),
        pytest.param({"b": 1, "a": [True, None]}, '{"b":1,"a":[true,null]}', id="keys keep their order"),
        pytest.param(("a", 1.5), '["a",1.5]', id="tuple"),
        pytest.param({}, "{}", id="empty object"),
        pytest.param([], "[]", id="empty list"),
    ],
)
def test_marshal_as_go_does(value, json):
    assert gotext.marshal(value) == json


@pytest.mark.parametrize(
    ("text", "bits", "value"),
    [
        pytest.param("0", 64, 0, id="zero"),
        pytest.param("+007", 64, 7, id="plus and leading zeros"),
        pytest.param("-9223372036854775808", 64, -(2**63), id="least"),
        pytest.param("2147483647", 32, 2**31 - 1, id="most of 32 bits"),
        pytest.param("0" * 40 + "1", 64, 1, id="long and small"),
    ],
)
def test_parse_int(text, bits, value):
    assert gotext.parse_int(text, bits=bits) == value


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "invalid syntax", id="empty"),
        pytest.param("1_0", "invalid syntax", id="underscore"),
        pytest.param(" 1", "invalid syntax", id="space"),
        pytest.param("\N{ARABIC-INDIC DIGIT ONE}", "invalid syntax", id="digit of another script"),
        pytest.param("2147483648", "value out of range", id="too large"),
        pytest.param("-2147483649", "value out of range", id="too small"),
        pytest.param("9" * 5000, "value out of range", id="very long"),
    ],
)
def test_parse_int_refuses(text, problem):
    with pytest.raises(gotext.NumberError) as refused:
        gotext.parse_int(text, bits=32, function="Atoi")
    assert str(refused.value) == f'strconv.Atoi: parsing "{text}": {problem}'


def test_parse_uint():
    assert gotext.parse_uint("18446744073709551615") == 2**64 - 1


@pytest.mark.parametrize(
    ("text", "problem"),
    [("garbage", "invalid syntax"), ("-1", "invalid syntax"), ("18446744073709551616", "value out of range")],
)
def test_parse_uint_refuses(text, problem):
    with pytest.raises(gotext.NumberError) as refused:
        gotext.parse_uint(text)
    assert str(refused.value) == f'strconv.ParseUint: parsing "{text}": {problem}'


@pytest.mark.parametrize("text", ["1", "t", "T", "TRUE", "true", "True"])
def test_parse_bool(text):
    assert gotext.parse_bool(text) is True
    opposite = {"1": "0", "t": "f", "T": "F", "TRUE": "FALSE", "true": "false", "True": "False"}[text]
    assert gotext.parse_bool(opposite) is False


@pytest.mark.parametrize("text", ["", "yes", "tRUE", "2", " true"])
def test_invalid_boolean_has_error_of_strconv(text):
    with pytest.raises(gotext.NumberError) as refused:
        gotext.parse_bool(text)
    assert str(refused.value) == f'strconv.ParseBool: parsing "{text}": invalid syntax'


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain", "plain"),
        ("\u20ac".encode(), "\u20ac"),
        (b"\xe2\x82x", "\ufffd\ufffdx"),
        (b"\xed\xa0\x80", "\ufffd\ufffd\ufffd"),
        (b"a\xffb\xf0\x9f\x98", "a\ufffdb\ufffd\ufffd\ufffd"),
    ],
)
def test_invalid_bytes_are_replaced_one_by_one(data, text):
    assert gotext.decode_utf8(data) == text
