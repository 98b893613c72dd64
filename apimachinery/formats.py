"""The string formats of schemas, with the rules of upstream's OpenAPI library.

The time of each rule is linear in the text. Unknown formats are ignored, as upstream does.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Mapping
from ipaddress import IPv6Address
from typing import Final
from unicodedata import category

from . import durations
from .mail import is_mail_address
from .uri import is_request_uri

Rule = Callable[[str], bool]


def _matches(pattern: str, *, ignore_case: bool = False) -> Rule:
    compiled = re.compile(pattern, re.IGNORECASE | re.ASCII if ignore_case else re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


# --- times

_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIME: Final = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})")
_SPAN: Final = re.compile(r"(?<![0-9])([0-9]++)[\t\n\f\r ]*+([A-Za-zµ]+)")
_UNITS: Final = frozenset(("ns", "us", "µs", "ms", "s", "m", "h", "hr", "d", "w", "wk"))
_UNIT_PREFIXES: Final = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_INT64_DIGITS: Final = 19


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    # A leap year for the year 0, which Python's calendar does not have.
    return 1 <= month <= 12 and 1 <= day <= monthrange(year or 2000, month)[1]


def _is_date_time(text: str) -> bool:
    """Return whether a text is a date and a time. What follows a second T is ignored, as upstream does."""
    parts = text.lower().split("t", 2)
    match = _TIME.fullmatch(parts[1]) if len(parts) > 1 and _is_date(parts[0]) else None
    return match is not None and match[1] <= "23" and match[2] <= "59" and match[3] <= "59"


def _is_duration(text: str) -> bool:
    """Return whether a text is a Go duration, or contains a number and a unit: `3 days`."""
    try:
        durations.parse_duration(text)
    except ValueError:
        return _has_unit(text)
    return True


def _has_unit(text: str) -> bool:
    has_unit = False
    for digits, unit in _SPAN.findall(text):
        number = digits.lstrip("0")
        if len(number) > _INT64_DIGITS or int(number or 0) >= 2**63:
            return False
        name = unit.lower()
        has_unit = has_unit or name in _UNITS or name.startswith(_UNIT_PREFIXES)
    return has_unit


# --- addresses


def _is_ipv4(text: str) -> bool:
    """Return whether a text is an IPv4 address, perhaps with leading zeros, or an IPv6 address that contains one."""
    separator = next((character for character in text if character in ".:"), "")
    return "." in text and (_is_dotted(text) if separator == "." else _is_sloppy_ipv6(text))


def _is_dotted(text: str) -> bool:
    parts = text.split(".", 4)
    return len(parts) == 4 and all(_is_number_up_to(255, part) for part in parts)


def _is_number_up_to(limit: int, text: str) -> bool:
    if not (text.isascii() and text.isdigit()):
        return False
    digits = text.lstrip("0") or "0"
    return len(digits) <= 3 and int(digits) <= limit


def _is_sloppy_ipv6(text: str) -> bool:
    """Return whether a text is an IPv6 address, whose groups may have extra leading zeros."""
    head, separator, last = text.rpartition(":")
    if separator and "." in last:
        return _is_dotted(last) and _is_sloppy_ipv6(f"{head}:0:0")
    groups = (
        group if group.strip("0") == "" or len(group) < 5 else group.lstrip("0") for group in text.split(":")
    )
    return _is_ipv6(":".join(group[-4:] if group.strip("0") == "" else group for group in groups))


def _is_ipv6(text: str) -> bool:
    if ":" not in text or "%" in text:
        return False
    try:
        IPv6Address(text)
    except ValueError:
        return False
    return True


def _is_cidr(text: str) -> bool:
    address, separator, length = text.partition("/")
    if not separator:
        return False
    if _is_dotted(address):
        return _is_number_up_to(32, length)
    return _is_sloppy_ipv6(address) and _is_number_up_to(128, length)


_MAC: Final = re.compile(
    r"(?:H{2}(?:(?::H{2}){5}|(?::H{2}){7}|(?::H{2}){19}|(?:-H{2}){5}|(?:-H{2}){7}|(?:-H{2}){19})"
    r"|H{4}(?:(?:\.H{4}){2}|(?:\.H{4}){3}|(?:\.H{4}){9})|H{12}|H{16}|H{40})".replace("H", "[0-9a-fA-F]")
)
_MAX_HOST_BYTES, _MAX_LABEL_BYTES = 255, 63


def _is_hostname(text: str) -> bool:
    if len(text.encode(errors="replace")) > _MAX_HOST_BYTES:
        return False
    labels = text.split(".")
    if any(len(label.encode(errors="replace")) > _MAX_LABEL_BYTES for label in labels):
        return False
    if len(labels) == 1:
        rest = text[1:].removeprefix("-")
        return _is_host_character(text[:1]) and len(rest) < 63 and all(map(_is_host_character, rest))
    *others, last = labels
    return len(last) >= 2 and all(map(_is_letter, last)) and all(map(_is_label, others))


def _is_label(label: str) -> bool:
    ends = _is_host_character(label[:1]) and _is_host_character(label[-1:])
    return ends and all(map(_is_host_character, label.replace("-", "")))


def _is_host_character(character: str) -> bool:
    """Return whether a character is a letter, an ASCII digit or a symbol."""
    return character in _DIGITS or (character != "" and category(character)[0] in "LS")


def _is_letter(character: str) -> bool:
    return category(character)[0] == "L"


# --- numbers of things

_DIGITS: Final = frozenset("0123456789")
_NOT_DIGITS: Final = re.compile("[^0-9]+")
_SPACES_AND_HYPHENS: Final = re.compile(r"[\t\n\f\r -]+")
_CARD: Final = re.compile(
    "4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}"
    r"|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11}"
)


def _is_credit_card(text: str) -> bool:
    digits = _NOT_DIGITS.sub("", text)
    if not _CARD.fullmatch(digits):
        return False
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(map(int, digits[::-2])) + sum(doubled)) % 10 == 0


def _is_isbn10(text: str) -> bool:
    digits = _SPACES_AND_HYPHENS.sub("", text)
    if not re.fullmatch("[0-9]{9}[0-9X]", digits):
        return False
    values = [10 if digit == "X" else int(digit) for digit in digits]
    return sum(place * value for place, value in enumerate(values, 1)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    digits = _SPACES_AND_HYPHENS.sub("", text)
    if not re.fullmatch("[0-9]{13}", digits):
        return False
    return sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits)) % 10 == 0


_BASE64: Final = re.compile("[A-Za-z0-9+/]++={0,2}")
_LONG_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?(?:\.[a-z0-9](?:[-a-z0-9]*[a-z0-9])?)*")
_SPACE, _BYTE = r"[\t\n\f\r ]*+", "(?:0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])"
_UUID: Final = "[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{}-?{}-?[0-9a-f]{{12}}"
_ANY, _VARIANT = "[0-9a-f]{4}", "[89ab][0-9a-f]{3}"


def _is_long_name(text: str) -> bool:
    return len(text) <= 253 and _LONG_NAME.fullmatch(text) is not None


def _uuid(third: str, fourth: str) -> Rule:
    return _matches(_UUID.format(third, fourth), ignore_case=True)


_RULES: Final[Mapping[str, Rule]] = {
    "bsonobjectid": _matches("[0-9a-fA-F]{24}"),
    "byte": lambda text: len(text) % 4 == 0 and _BASE64.fullmatch(text) is not None,
    "cidr": _is_cidr,
    "creditcard": _is_credit_card,
    "date": _is_date,
    "datetime": _is_date_time,
    "duration": _is_duration,
    "email": is_mail_address,
    "hexcolor": _matches("#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "k8slongname": _is_long_name,
    "k8sshortname": lambda text: len(text) <= 63 and "." not in text and _is_long_name(text),
    "mac": lambda text: _MAC.fullmatch(text) is not None,
    "password": lambda _text: True,
    "rgbcolor": _matches(rf"rgb\({_SPACE}{_BYTE}{_SPACE},{_SPACE}{_BYTE}{_SPACE},{_SPACE}{_BYTE}{_SPACE}\)"),
    "ssn": lambda text: (
        len(text) == 11 and re.fullmatch("[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}", text) is not None
    ),
    "uri": is_request_uri,
    "uuid": _uuid(_ANY, _ANY),
    "uuid3": _uuid("3[0-9a-f]{3}", _ANY),
    "uuid4": _uuid("4[0-9a-f]{3}", _VARIANT),
    "uuid5": _uuid("5[0-9a-f]{3}", _VARIANT),
}


def rule(form: str) -> Rule | None:
    """Return the rule of a format, or None if upstream ignores the format. Hyphens in the name are ignored."""
    return _RULES.get(form.replace("-", ""))
