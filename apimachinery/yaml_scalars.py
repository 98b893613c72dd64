"""The values of YAML's scalars by the rules of YAML 1.1, as sigs.k8s.io/yaml has them.

`y`, `on` and their like are booleans, `017` is an octal number, dates are texts.
"""

import base64
import re
from typing import Any, Final

from yaml.events import ScalarEvent

from mockube.apimachinery import gotext

MAX_SHOWN: Final = 200
"""Characters of a value in an error."""

_TAG: Final = "tag:yaml.org,2002:"
_STR, _BOOL, _INT, _FLOAT, _NULL, _MERGE, _TIMESTAMP, _BINARY = (
    _TAG + name for name in ("str", "bool", "int", "float", "null", "merge", "timestamp", "binary")
)
_RESOLVABLE: Final = frozenset({_STR, _BOOL, _INT, _FLOAT, _NULL, _TIMESTAMP})

_INFINITE: Final = {
    sign + word: go_name
    for sign, go_name in (("", "+Inf"), ("+", "+Inf"), ("-", "-Inf"))
    for word in (".inf", ".Inf", ".INF")
} | dict.fromkeys((".nan", ".NaN", ".NAN"), "NaN")
"""Numbers that JSON cannot hold, as Go names them."""
_WORDS: Final[dict[str, Any]] = (
    dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True)
    | dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False)
    | dict.fromkeys(("", "~", "null", "Null", "NULL"))
)
_BEGINNINGS: Final = frozenset("yYnNtTfFoO~+-.0123456789")
"""Of the plain texts that may be something else than texts."""

_INTEGER: Final = re.compile(r"[-+]?(?:0[bB][01]+|0[xX][0-9a-fA-F]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
_FRACTION: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
"""No position of a text can be reached in two ways, so the time to match grows with its length alone."""
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}")
_MAX_INTEGER_LENGTH: Final = 70
"""Characters: a sign, a prefix and 64 binary digits, with some zeros before them."""


class YamlError(ValueError):
    """Not YAML, or not such as JSON can hold; the message is upstream's."""


def refusal(problem: str) -> YamlError:
    return YamlError(f"error converting YAML to JSON: yaml: {problem}")


def is_text(text: str) -> bool:
    """Whether a plain scalar is read as the text that it is."""
    if text and text[0] not in _BEGINNINGS:
        return text != "<<"
    return text not in _INFINITE and _resolve(text)[0] == _STR


def is_merge(event: Any) -> bool:
    return type(event) is ScalarEvent and event.value == "<<" and (event.implicit[0] or event.tag == _MERGE)


def scalar_value(event: Any) -> Any:
    text, tag = event.value, event.tag
    if tag is None:
        if not event.implicit[0] or (text and text[0] not in _BEGINNINGS):
            return text
        return _resolve(text)[1]
    if tag == _BINARY:
        return _binary(text)
    if tag not in _RESOLVABLE or tag == _STR:
        return text
    return _resolve_tagged(tag, text)


def _resolve_tagged(tag: str, text: str) -> Any:
    """A scalar with an explicit tag."""
    resolved_tag, value = _resolve(text)
    if tag == _TIMESTAMP and _DATE.match(text):
        return text
    if resolved_tag == tag or (tag == _FLOAT and resolved_tag == _INT):
        return value
    names = (f"!!{full_tag.removeprefix(_TAG)}" for full_tag in (resolved_tag, tag))
    problem = "cannot decode {} `{}` as a {}"
    resolved_tag, tag = names
    raise refusal(problem.format(resolved_tag, text[:MAX_SHOWN], tag))


def _binary(text: str) -> str:
    try:
        return gotext.decode_utf8(base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True))
    except ValueError as error:
        raise refusal("!!binary value contains invalid base64 data") from error


def _resolve(text: str) -> tuple[str, Any]:
    """The tag and the value of a plain text."""
    value = _WORDS.get(text, _WORDS)
    if value is not _WORDS:
        return (_NULL if value is None else _BOOL), value
    first = text[0]
    if first not in "+-.0123456789":
        return _STR, text
    if text in _INFINITE:
        raise YamlError(f"error converting YAML to JSON: json: unsupported value: {_INFINITE[text]}")
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
    """Without a fraction it is what JSON writes without one; what is too large is a text."""
    value = float(plain)
    if value in (float("inf"), float("-inf")):
        return _STR, text
    if value.is_integer() and -(2**63) <= value < 2**64:
        return _FLOAT, int(value)
    return _FLOAT, value
