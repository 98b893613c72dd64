"""The values of YAML scalars, by the rules of YAML 1.1 in sigs.k8s.io/yaml.

`y`, `on` and their like are booleans, `017` is an octal number, dates are texts.
"""

import base64
import re
from typing import Any, Final

from yaml.events import ScalarEvent

from . import gotext

MAX_VALUE_LENGTH: Final = 200
"""The maximum number of characters of a value in an error."""

_TAG: Final = "tag:yaml.org,2002:"
_STR, _BOOL, _INT, _FLOAT, _NULL, _MERGE, _TIMESTAMP, _BINARY = (
    _TAG + name for name in ("str", "bool", "int", "float", "null", "merge", "timestamp", "binary")
)
_RESOLVABLE: Final = frozenset({_STR, _BOOL, _INT, _FLOAT, _NULL, _TIMESTAMP})

_NON_FINITE: Final = {
    sign + word: go_name
    for sign, go_name in (("", "+Inf"), ("+", "+Inf"), ("-", "-Inf"))
    for word in (".inf", ".Inf", ".INF")
} | dict.fromkeys((".nan", ".NaN", ".NAN"), "NaN")
"""The numbers that JSON cannot represent, with Go's names."""
_CONSTANTS: Final[dict[str, Any]] = (
    dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True)
    | dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False)
    | dict.fromkeys(("", "~", "null", "Null", "NULL"))
)
_FIRST_CHARACTERS: Final = frozenset("yYnNtTfFoO~+-.0123456789")
"""The first characters of the plain scalars that can be other than strings."""

_INTEGER: Final = re.compile(r"[-+]?(?:0[bB][01]+|0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FRACTION: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
"""The pattern is unambiguous, so that the time of a match is linear in the text."""
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}")
_MAX_INTEGER_LENGTH: Final = 70
"""The maximum number of characters of an integer: a sign, a prefix and 64 binary digits, with some leading zeros."""


class YamlError(ValueError):
    """A text is not valid YAML, or JSON cannot represent it; the message is upstream's."""


def yaml_error(problem: str) -> YamlError:
    return YamlError(f"error converting YAML to JSON: yaml: {problem}")


def is_text(text: str) -> bool:
    """Return whether a plain scalar is a string rather than a value of another type."""
    if text and text[0] not in _FIRST_CHARACTERS:
        return text != "<<"
    return text not in _NON_FINITE and _resolve(text)[0] == _STR


def is_merge(event: Any) -> bool:
    return type(event) is ScalarEvent and event.value == "<<" and (event.implicit[0] or event.tag == _MERGE)


def scalar_value(event: Any) -> Any:
    text, tag = event.value, event.tag
    if tag is None:
        if not event.implicit[0] or (text and text[0] not in _FIRST_CHARACTERS):
            return text
        return _resolve(text)[1]
    if tag == _BINARY:
        return _binary(text)
    if tag not in _RESOLVABLE or tag == _STR:
        return text
    return _resolve_tagged(tag, text)


def _resolve_tagged(tag: str, text: str) -> Any:
    """Return the value of a scalar with an explicit tag."""
    resolved_tag, value = _resolve(text)
    if tag == _TIMESTAMP and _DATE.match(text):
        return text
    if resolved_tag == tag or (tag == _FLOAT and resolved_tag == _INT):
        return value
    names = (f"!!{full_tag.removeprefix(_TAG)}" for full_tag in (resolved_tag, tag))
    problem = "cannot decode {} `{}` as a {}"
    resolved_tag, tag = names
    raise yaml_error(problem.format(resolved_tag, text[:MAX_VALUE_LENGTH], tag))


def _binary(text: str) -> str:
    try:
        return gotext.decode_utf8(base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True))
    except ValueError as error:
        raise yaml_error("!!binary value contains invalid base64 data") from error


def _resolve(text: str) -> tuple[str, Any]:
    """Return the tag and the value of a plain scalar."""
    value = _CONSTANTS.get(text, _CONSTANTS)
    if value is not _CONSTANTS:
        return (_NULL if value is None else _BOOL), value
    first = text[0]
    if first not in "+-.0123456789":
        return _STR, text
    if text in _NON_FINITE:
        raise YamlError(f"error converting YAML to JSON: json: unsupported value: {_NON_FINITE[text]}")
    if first == ".":
        return _fraction(text, text) if _FRACTION.fullmatch(text) else (_STR, text)
    plain = text.replace("_", "") if "_" in text else text
    if len(plain) <= _MAX_INTEGER_LENGTH and _INTEGER.fullmatch(plain):
        value = _integer(plain)
        if -(2**63) <= value < 2**64:
            return _INT, value
    return _fraction(plain, text) if _FRACTION.fullmatch(plain) else (_STR, text)


def _integer(plain: str) -> int:
    digits = plain.lstrip("+-")
    prefix = digits[:2].lower()
    if prefix in ("0b", "0o", "0x"):
        return int(plain, 0)
    return int(plain, 8 if len(digits) > 1 and digits[0] == "0" else 10)


def _fraction(plain: str, text: str) -> tuple[str, Any]:
    """Return the tag and the value of a number with a fraction or an exponent; a number that is too large is a string."""
    value = float(plain)
    if value in (float("inf"), float("-inf")):
        return _STR, text
    if value.is_integer() and -(2**63) <= value < 2**64:
        return _FLOAT, int(value)
    return _FLOAT, value
