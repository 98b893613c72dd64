from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mockube.apimachinery import quantity
from mockube.apimachinery.quantity import MILLI, ZERO, Format, Quantity, QuantityError

DECIMAL = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E"]
BINARY = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
TEXTS = st.builds(
    lambda sign, number, suffix: f"{sign}{number}{suffix}",
    st.sampled_from(["", "", "-", "+"]),
    st.from_regex(r"[0-9]{1,20}(\.[0-9]{0,12})?", fullmatch=True),
    st.sampled_from([*DECIMAL, *BINARY, "e3", "E-6"]),
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        pytest.param("0", "0", id="zero"),
        pytest.param("0Gi", "0", id="zero with a suffix"),
        pytest.param("-0", "0", id="minus zero"),
        pytest.param("1", "1", id="one"),
        pytest.param("1000", "1k", id="thousand"),
        pytest.param("1000m", "1", id="thousand thousandths"),
        pytest.param("1.5", "1500m", id="no fraction"),
        pytest.param("0.5", "500m", id="half"),
        pytest.param(".5", "500m", id="no whole part"),
        pytest.param("1.", "1.", id="no fractional part"),
        pytest.param("100m", "100m", id="milli"),
        pytest.param("12e6", "12e6", id="exponent"),
        pytest.param("12E6", "12E6", id="capital exponent"),
        pytest.param("1200e5", "120e6", id="exponent, a multiple of three"),
        pytest.param("1e+2", "100", id="exponent with a sign"),
        pytest.param("5E", "5E", id="exa"),
        pytest.param("1Ki", "1Ki", id="kibi"),
        pytest.param("1024", "1024", id="1024 is not kibi"),
        pytest.param("1024Ki", "1Mi", id="mebi"),
        pytest.param("1.5Gi", "1536Mi", id="no binary fraction"),
        pytest.param("0.5Ki", "512", id="less than a kibi"),
        pytest.param("0.1Ki", "102400m", id="binary fraction of a unit"),
        pytest.param("1.1Ki", "1126400m", id="fraction that no binary unit holds"),
        pytest.param("0.0001Ki", "102400u", id="less than one"),
        pytest.param("-1Ki", "-1Ki", id="negative"),
        pytest.param("+1", "+1", id="plus is kept"),
        pytest.param("0001", "0001", id="leading zeros are kept"),
        pytest.param("1.500", "1.500", id="three digits after the point are kept"),
        pytest.param("1.000", "1", id="trailing zeros after the point are dropped"),
        pytest.param("0.1n", "1n", id="below nano is rounded up"),
        pytest.param("-1.1n", "-2n", id="rounded away from zero"),
        pytest.param("1e-100", "1e-9", id="below the smallest unit"),
        pytest.param("1e-2147483648", "1e-9", id="smallest exponent"),
        pytest.param("1000E", "1", id="beyond E upstream prints no unit"),
        pytest.param("16Ei", "9223372036854775807", id="binary is capped"),
        pytest.param("-16Ei", "-9223372036854775807", id="binary is capped below"),
        pytest.param("1e4294967297", "10", id="the exponent has 32 bits"),
        pytest.param("1e2147483647", "10e2147483646", id="largest exponent"),
        pytest.param("12345678901234567890k", "12345678901234567890k", id="many digits"),
        pytest.param("1." + "0" * 5000 + "1", "1000000001n", id="very many digits"),
    ],
)
def test_canonical_quantity(text, canonical):
    assert str(quantity.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "form"),
    [
        pytest.param("1", Format.DECIMAL_SI, id="plain"),
        pytest.param("1Mi", Format.BINARY_SI, id="binary"),
        pytest.param("1e3", Format.DECIMAL_EXPONENT, id="exponent"),
        pytest.param("0.0001Ki", Format.DECIMAL_SI, id="binary, less than one"),
        pytest.param("0.0Ki", Format.BINARY_SI, id="binary zero"),
    ],
)
def test_quantity_format(text, form):
    assert quantity.parse(text).format is form


WRONG_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
WRONG_SUFFIX = "unable to parse quantity's suffix"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("", WRONG_FORMAT, id="empty"),
        pytest.param("a lot", WRONG_FORMAT, id="words"),
        pytest.param("1 ", WRONG_FORMAT, id="space"),
        pytest.param("1.2.3", WRONG_FORMAT, id="two points"),
        pytest.param("1\n", WRONG_FORMAT, id="newline"),
        pytest.param("1K", WRONG_SUFFIX, id="capital K"),
        pytest.param("1e", WRONG_SUFFIX, id="exponent without a number"),
        pytest.param("1em", WRONG_SUFFIX, id="exponent that is none"),
        pytest.param("1+2", WRONG_SUFFIX, id="sum"),
        pytest.param("1e99999999999999999999", WRONG_SUFFIX, id="exponent out of range"),
        pytest.param("e-100", "unable to parse numeric part of quantity", id="no number"),
    ],
)
def test_parse_refuses(text, message):
    with pytest.raises(QuantityError) as refused:
        quantity.parse(text)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("value", "canonical"),
    [
        pytest.param(" 100m ", "100m", id="text with spaces around"),
        pytest.param(2000, "2k", id="integer"),
        pytest.param(0.25, "250m", id="float"),
        pytest.param(1e-7, "100e-9", id="small float"),
        pytest.param(None, "0", id="null"),
    ],
)
def test_quantity_from_json(value, canonical):
    assert str(quantity.from_json(value)) == canonical


@pytest.mark.parametrize("value", [True, {}, ["1"]], ids=["boolean", "object", "list"])
def test_quantity_from_json_refuses(value):
    with pytest.raises(QuantityError) as refused:
        quantity.from_json(value)
    assert str(refused.value) == WRONG_FORMAT


@pytest.mark.parametrize(
    ("text", "scale", "value"),
    [
        pytest.param("1500m", 0, 2, id="rounded up"),
        pytest.param("-1500m", 0, -2, id="rounded away from zero"),
        pytest.param("1.5", MILLI, 1500, id="milli"),
        pytest.param("1Gi", 0, 2**30, id="binary"),
        pytest.param("1Gi", 6, 1074, id="mega"),
        pytest.param("1e2147483647", 0, 2**63 - 1, id="no more than 64 bits"),
        pytest.param("-1e2147483647", 0, -(2**63) + 1, id="no less than 64 bits"),
    ],
)
def test_scaled_value(text, scale, value):
    assert quantity.parse(text).scaled_value(scale) == value


@pytest.mark.parametrize(
    ("value", "number", "scaled"),
    [
        pytest.param("1500m", 1.5, 2, id="text"),
        pytest.param(2, 2.0, 2, id="number"),
        pytest.param("0", 0.0, 0, id="zero"),
        pytest.param(None, -1, -1, id="none"),
        pytest.param("much", -1, -1, id="invalid"),
    ],
)
def test_value_of_field_has_default(value, number, scaled):
    assert quantity.number_or(value, -1) == number
    assert quantity.scaled_value_or(value, -1) == scaled


@pytest.mark.parametrize(
    ("text", "rounded"),
    [
        pytest.param("1.500", "1.500", id="unchanged"),
        pytest.param("100u", "1m", id="up"),
        pytest.param("-1100u", "-2m", id="rounded away from zero"),
        pytest.param("1Gi", "1Gi", id="binary"),
    ],
)
def test_round_up_to_milli(text, rounded):
    assert str(quantity.parse(text).round_up(MILLI)) == rounded


def test_quantities_compare_as_numbers():
    one, milli, more = map(quantity.parse, ["1", "1000m", "1Ki"])
    assert one == milli
    assert hash(one) == hash(milli)
    assert one < more
    assert more >= one
    assert quantity.parse("1e2147483647") > more
    assert one != 1


@pytest.mark.parametrize(
    ("result", "canonical"),
    [
        pytest.param(quantity.parse("1Ki") + quantity.parse("1"), "1025", id="sum keeps the first's format"),
        pytest.param(quantity.parse("1Gi") + quantity.parse("1G"), "2073741824", id="sum of units"),
        pytest.param(ZERO + quantity.parse("2Ki"), "2Ki", id="sum with zero has the other format"),
        pytest.param(quantity.parse("1") - quantity.parse("250m"), "750m", id="difference"),
        pytest.param(ZERO - quantity.parse("2Ki"), "-2Ki", id="difference from zero"),
        pytest.param(quantity.parse("1.5Gi") * 2, "3Gi", id="product"),
        pytest.param(-quantity.parse("100m"), "-100m", id="negation"),
        pytest.param(Quantity(2**70, Format.BINARY_SI), "1", id="beyond Ei upstream prints no unit"),
        pytest.param(Quantity(Decimal("0.25")), "250m", id="made of a decimal"),
    ],
)
def test_quantity_arithmetic(result, canonical):
    assert str(result) == canonical


@pytest.mark.parametrize("large", ["1e2147483647", "1e10001"])
def test_sum_beyond_limit_is_rounded_up(large):
    total = quantity.parse(large) + quantity.parse("1")
    assert total > quantity.parse(large)
    assert len(str(total)) < 10_100


def test_sum_of_5_000_digits_is_exact():
    assert str(quantity.parse("9" * 5_000) + quantity.parse("1m")) == "9" * 5_000 + "001m"


@pytest.mark.parametrize(
    ("text", "whole"),
    [("1", True), ("1m", False), ("1000m", True), ("9" * 5_000, True), ("9" * 5_000 + "m", False),
     ("1e30", True), ("1e999999999", True), ("1e-999999999", False), ("0", True)],
)  # fmt: skip
def test_whole_quantity_is_an_integer(text, whole):
    assert quantity.parse(text).is_whole is whole


@pytest.mark.parametrize(("value", "canonical"), [(" 1Gi ", "1Gi"), ("\u20031", "1")])
def test_space_around_quantity_is_ignored(value, canonical):
    assert str(quantity.from_json(value)) == canonical


@pytest.mark.parametrize("value", ["1\n", "\t1"])
def test_escaped_space_around_quantity_is_refused(value):
    with pytest.raises(QuantityError):
        quantity.from_json(value)


def test_quantity_truth_and_representation():
    assert quantity.parse("1m")
    assert not ZERO
    assert repr(quantity.parse("1.5")) == "Quantity('1500m')"


@given(TEXTS)
def test_canonical_quantity_parses_to_itself(text):
    first = quantity.parse(text)
    assume(abs(first.number) < 10**21)
    again = quantity.parse(str(first))
    assert again == first
    assert str(again) == str(first)


@given(TEXTS, TEXTS)
def test_arithmetic_agrees_with_fractions(left, right):
    a, b = quantity.parse(left), quantity.parse(right)
    assert (a + b) - b == a
    assert (a < b) == ((a - b).number < 0)
    assert a + a == a * 2
    assert ZERO - a == -a


@given(TEXTS)
def test_no_fraction_is_printed_after_arithmetic(text):
    assert "." not in str(-quantity.parse(text))


@given(st.text("0123456789.+-eEinumkKMGTP", max_size=10) | st.text())
def test_any_quantity_text_is_parsed_or_refused(text):
    try:
        printed = str(quantity.parse(text))
    except QuantityError:
        return
    assert printed
