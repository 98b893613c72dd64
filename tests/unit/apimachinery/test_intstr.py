import pytest

from mockube.apimachinery import intstr
from mockube.apimachinery.intstr import IntOrStringError


@pytest.mark.parametrize(
    ("value", "total", "up", "down"),
    [
        pytest.param(3, 10, 3, 3, id="number"),
        pytest.param("25%", 10, 3, 2, id="percentage"),
        pytest.param("20%", 10, 2, 2, id="percentage without a rest"),
        pytest.param("0%", 10, 0, 0, id="empty"),
        pytest.param("150%", 3, 5, 4, id="more than all"),
        pytest.param("-25%", 10, -2, -3, id="negative"),
        pytest.param("1%", 0, 0, 0, id="percentage of zero"),
    ],
)
def test_scaled_percentage(value, total, up, down):
    assert intstr.scaled_value(value, total, round_up=True) == up
    assert intstr.scaled_value(value, total, round_up=False) == down


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param(None, "nil value for IntOrString", id="absent"),
        pytest.param(
            "5",
            "invalid value for IntOrString: invalid type: string is not a percentage",
            id="number as text",
        ),
        pytest.param(
            "x%",
            'invalid value for IntOrString: invalid value "x%": strconv.Atoi: parsing "x": invalid syntax',
            id="no number",
        ),
    ],
)
def test_scaled_refuses_invalid_percentage(value, message):
    with pytest.raises(IntOrStringError) as refused:
        intstr.scaled_value(value, 10, round_up=True)
    assert str(refused.value) == message
