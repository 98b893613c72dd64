import pytest

from mockube.apimachinery.quantity import QuantityError
from mockube.apimachinery.schema import scalars
from mockube.apimachinery.schema.model import Shape, Type
from mockube.apimachinery.schema.scalars import WrongKind
from mockube.apimachinery.timestamps import TimestampError


def read(shape, value, go=""):
    return scalars.reader(Type(shape=shape, go=go))(value)


@pytest.mark.parametrize(
    ("shape", "value", "expected"),
    [
        pytest.param(Shape.STRING, "x", "x", id="a text"),
        pytest.param(Shape.BOOLEAN, False, False, id="a boolean"),
        pytest.param(Shape.NUMBER, 0.5, 0.5, id="a fraction"),
        pytest.param(Shape.NUMBER, 2.0, 2, id="a float without a fraction"),
        pytest.param(Shape.NUMBER, 3, 3, id="an integer as a number"),
        pytest.param(Shape.NUMBER, 1e300, 1e300, id="float beyond integers"),
        pytest.param(Shape.QUANTITY, "0.5", "500m", id="a quantity"),
        pytest.param(Shape.QUANTITY, " 1Gi ", "1Gi", id="a quantity in spaces"),
        pytest.param(Shape.QUANTITY, 0.5, "500m", id="a quantity without quotes"),
        pytest.param(Shape.QUANTITY, 1024, "1024", id="a whole quantity without quotes"),
        pytest.param(Shape.INT_OR_STRING, 80, 80, id="either, an integer"),
        pytest.param(Shape.INT_OR_STRING, "25%", "25%", id="either, a text"),
        pytest.param(Shape.TIME, "2024-05-06T07:08:09Z", "2024-05-06T07:08:09Z", id="a time"),
        pytest.param(
            Shape.TIME, "2024-05-06T07:08:09.9+02:00", "2024-05-06T05:08:09Z", id="time in another zone"
        ),
        pytest.param(Shape.TIME, "0001-01-01T00:00:00Z", None, id="no time"),
        pytest.param(
            Shape.MICRO_TIME, "2024-05-06T07:08:09.120000Z", "2024-05-06T07:08:09.120000Z", id="microseconds"
        ),
        pytest.param(Shape.MICRO_TIME, "0001-01-01T00:00:00.000000Z", None, id="no microseconds"),
        pytest.param(Shape.BYTES, "YQ==", "YQ==", id="bytes"),
        pytest.param(Shape.BYTES, [97, None], "YQA=", id="bytes as numbers"),
        pytest.param(Shape.ANY, {"b": None, "a": []}, {"b": None, "a": []}, id="anything"),
    ],
)
def test_scalars_are_written_as_go_does(shape, value, expected):
    written = read(shape, value)
    assert (written, type(written)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("go", "least", "most"),
    [("int32", -(2**31), 2**31 - 1), ("int64", -(2**63), 2**63 - 1), ("uint8", 0, 255)],
)
def test_integer_out_of_range_is_refused(go, least, most):
    for value in (least, most):
        assert read(Shape.INTEGER, value, go) == value
    for value in (least - 1, most + 1):
        with pytest.raises(WrongKind):
            read(Shape.INTEGER, value, go)


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        pytest.param(Shape.STRING, 1, id="a number for a text"),
        pytest.param(Shape.BOOLEAN, 0, id="a number for a boolean"),
        pytest.param(Shape.INTEGER, True, id="a boolean for an integer"),
        pytest.param(Shape.INTEGER, 1.0, id="a float for an integer"),
        pytest.param(Shape.INTEGER, "1", id="a text for an integer"),
        pytest.param(Shape.NUMBER, "1", id="a text for a number"),
        pytest.param(Shape.NUMBER, True, id="a boolean for a number"),
        pytest.param(Shape.INT_OR_STRING, False, id="a boolean for either"),
        pytest.param(Shape.INT_OR_STRING, 2**31, id="too large an integer for either"),
        pytest.param(Shape.TIME, 0, id="a number for a time"),
        pytest.param(Shape.MICRO_TIME, {}, id="an object for a time"),
        pytest.param(Shape.BYTES, 1, id="a number for bytes"),
        pytest.param(Shape.BYTES, [256], id="a number that is no byte"),
    ],
)
def test_scalar_of_wrong_json_type_is_refused(shape, value):
    with pytest.raises(WrongKind):
        read(shape, value, "int64")


@pytest.mark.parametrize(
    ("shape", "value", "error"),
    [
        pytest.param(Shape.QUANTITY, "much", QuantityError, id="a text that is no quantity"),
        pytest.param(Shape.QUANTITY, [], QuantityError, id="a list that is no quantity"),
        pytest.param(Shape.TIME, "today", TimestampError, id="no time"),
        pytest.param(Shape.MICRO_TIME, "2024-05-06T07:08:09Z", TimestampError, id="no microseconds"),
        pytest.param(Shape.BYTES, "?", ValueError, id="no base64"),
    ],
)
def test_scalar_text_refused_by_its_reader_is_refused(shape, value, error):
    with pytest.raises(error):
        read(shape, value)
