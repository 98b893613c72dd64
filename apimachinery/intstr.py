"""IntOrString: a number or a text in the same field, such as `maxSurge: 1` or `"25%"`, or a port's number or name.

The value is an `int` or a `str`, here as in an object.
"""

from typing import TypeAlias

from . import gotext

IntOrString: TypeAlias = int | str


class IntOrStringError(ValueError):
    """A value cannot be scaled; the message is upstream's."""


def scaled_value(value: IntOrString | None, total: int, *, round_up: bool) -> int:
    """Return a number unchanged, or a percentage of the total, rounded to a whole number."""
    if value is None:
        raise IntOrStringError("nil value for IntOrString")
    if isinstance(value, int):
        return value
    share = _percent(value) * total
    return -(-share // 100) if round_up else share // 100


def _percent(text: str) -> int:
    if not text.endswith("%"):
        raise IntOrStringError("invalid value for IntOrString: invalid type: string is not a percentage")
    try:
        return gotext.parse_int(text[:-1], function="Atoi")
    except gotext.NumberError as problem:
        raise IntOrStringError(
            f"invalid value for IntOrString: invalid value {gotext.quote(text)}: {problem}"
        ) from None
