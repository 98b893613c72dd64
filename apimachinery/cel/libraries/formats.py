"""Named formats: `format.dns1123Label().validate('a')`."""

from collections.abc import Callable
from typing import Any, Final

from mockube.apimachinery import formats, names, uri
from mockube.apimachinery.cel.declarations import declare
from mockube.apimachinery.cel.values import NONE, CelError, Opaque, Optional

Check = Callable[[str], list[str]]


class NamedFormat(Opaque):
    __slots__ = ("check", "name", "regex_size")
    type_name = "kubernetes.NamedFormat"

    def __init__(self, name: str, check: Check, regex_size: int) -> None:
        self.name = name
        self.check = check
        self.regex_size = regex_size
        """The assumed length of the format's regular expression, which determines the cost of a validation."""

    def equals(self, other: object, /) -> bool:
        if not isinstance(other, NamedFormat):
            raise CelError("no such overload")
        return self.name == other.name


def _prefix(check: Check) -> Check:
    return lambda text: check(names.mask_trailing_dash(text))


def _format_check(name: str, problem: str) -> Check:
    is_valid = formats.rule(name)
    assert is_valid is not None
    return lambda text: [] if is_valid(text) else [problem]


def _uri(text: str) -> list[str]:
    problem = uri.request_uri_problem(text)
    return [problem] if problem else []


_URL_PATTERN_SIZE, _BASE64_PATTERN_SIZE = 1103, 84
_UUID_PATTERN_SIZE, _DATE_TIME_PATTERN_SIZE = 70, 71
FORMATS: Final = {
    "dns1123Label": NamedFormat("DNS1123Label", names.check_dns1123_label, 30),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", names.check_dns1123_subdomain, 60),
    "dns1035Label": NamedFormat("DNS1035Label", names.check_dns1035_label, 30),
    "qualifiedName": NamedFormat("QualifiedName", names.check_label_key, 60),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _prefix(names.check_dns1123_label), 30),
    "dns1123SubdomainPrefix": NamedFormat(
        "DNS1123SubdomainPrefix", _prefix(names.check_dns1123_subdomain), 60
    ),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _prefix(names.check_dns1035_label), 30),
    "labelValue": NamedFormat("LabelValue", names.check_label_value, 40),
    "uri": NamedFormat("URI", _uri, _URL_PATTERN_SIZE),
    "uuid": NamedFormat("uuid", _format_check("uuid", "does not match the UUID format"), _UUID_PATTERN_SIZE),
    "byte": NamedFormat("byte", _format_check("byte", "invalid base64"), _BASE64_PATTERN_SIZE),
    "date": NamedFormat("date", _format_check("date", "invalid date"), _DATE_TIME_PATTERN_SIZE),
    "datetime": NamedFormat(
        "datetime", _format_check("datetime", "invalid datetime"), _DATE_TIME_PATTERN_SIZE
    ),
}
_CONSTANTS = "\n".join(f"format.{name} format.{name} () -> kubernetes.NamedFormat" for name in FORMATS)
DECLARED: Final = declare(
    f"""
    {_CONSTANTS}
    format.named format-named (string) -> optional_type(kubernetes.NamedFormat)
    validate format-validate kubernetes.NamedFormat.(string) -> optional_type(list(string))
    """
)


def _find_format(name: str) -> Optional:
    return Optional(FORMATS[name]) if name in FORMATS else NONE


def _validate(named: NamedFormat, text: str) -> Optional:
    problems = named.check(text)
    return Optional(problems) if problems else NONE


def _constant(named: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: named


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    **{f"format.{name}": _constant(named) for name, named in FORMATS.items()},
    "format-named": _find_format,
    "format-validate": _validate,
}
