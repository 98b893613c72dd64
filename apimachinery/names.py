"""Validation of names: one check for each form of name.

A check returns upstream's messages, or none if the name is valid; the caller adds the field's path. `generate_name`
returns a name that is valid if the base is.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple

from . import randomness
from .wellknown import STANDARD_FINALIZERS

LABEL_MAX_LENGTH: Final = 63
SUBDOMAIN_MAX_LENGTH: Final = 253
PORT_NAME_MAX_LENGTH: Final = 15
GENERATED_BASE_MAX_LENGTH: Final = LABEL_MAX_LENGTH - randomness.SUFFIX_LENGTH
"""A generated name is a valid label, too (apiserver/pkg/storage/names/generate.go)."""

CHARACTERS: Final = "characters"
BYTES: Final = "bytes"
"""The unit in the message. Lengths are always counted in bytes; upstream's older checks call them characters."""

EMPTY: Final = "must be non-empty"


class _Format(NamedTuple):
    matches: Callable[[str], object]
    message: str


def _format(rule: str, pattern: str, *examples: str) -> _Format:
    example_list = " or ".join(f"'{example}', " for example in examples)
    hint = f"(e.g. {example_list}regex" if examples else "(regex"
    return _Format(re.compile(pattern).fullmatch, f"{rule} {hint} used for validation is '{pattern}')")


_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_WITH_UNDERSCORE = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_LABEL_KEY_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_KEY_RULE = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"

_HTTP_PATH = _format("Invalid path", r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_DNS1123_LABEL = _format(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character",
    _LABEL,
    "my-name",
    "123-abc",
)
_DNS1123_SUBDOMAIN = _format(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
    "and must start and end with an alphanumeric character",
    rf"{_LABEL}(\.{_LABEL})*",
    "example.com",
)
_DNS1123_SUBDOMAIN_WITH_UNDERSCORE = _format(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', "
    "and must start and end with an alphanumeric character",
    rf"{_LABEL_WITH_UNDERSCORE}(\.{_LABEL_WITH_UNDERSCORE})*",
    "example.com",
)
_WILDCARD_DNS1123_SUBDOMAIN = _format(
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of "
    "lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character",
    rf"\*\.{_LABEL}(\.{_LABEL})*",
    "*.example.com",
)
_DNS1035_LABEL = _format(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character",
    "[a-z]([-a-z0-9]*[a-z0-9])?",
    "my-name",
    "abc-123",
)
_KEY_NAME = _format(_LABEL_KEY_RULE, _LABEL_KEY_NAME, "MyName", "my.name", "123-abc")
_LABEL_VALUE = _format(
    f"a valid label must be an empty string or {_LABEL_KEY_RULE.removeprefix('must ')}",
    f"({_LABEL_KEY_NAME})?",
    "MyValue",
    "my_value",
    "12345",
)
_C_IDENTIFIER = _format(
    "a valid C identifier must start with alphabetic character or '_', "
    "followed by a string of alphanumeric characters or '_'",
    "[A-Za-z_][A-Za-z0-9_]*",
    "my_name",
    "MY_NAME",
    "MyName",
)
_PERCENT = _format(
    "a valid percent string must be a numeric string followed by an ending '%'", "[0-9]+%", "1%", "93%"
)
_HTTP_HEADER_NAME = _format(
    "a valid HTTP header must consist of alphanumeric characters or '-'", "[-A-Za-z0-9]+", "X-Header-Name"
)
_ENV_VAR_NAME = _format(
    "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', "
    "and must not start with a digit",
    "[-._a-zA-Z][-._a-zA-Z0-9]*",
    "my.env-name",
    "MY_ENV.NAME",
    "MyEnvName1",
)
_CONFIG_MAP_KEY = _format(
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
    "[-._a-zA-Z0-9]+",
    "key.name",
    "KEY_NAME",
    "key-name",
)


# --- DNS names


def check_dns1123_label(value: str, unit: str = CHARACTERS) -> list[str]:
    problems = _check_length(value, LABEL_MAX_LENGTH, unit)
    if not _DNS1123_LABEL.matches(value):
        dotted = _DNS1123_SUBDOMAIN.matches(value)
        problems.append("must not contain dots" if dotted else _DNS1123_LABEL.message)
    return problems


def check_dns1123_subdomain(value: str, unit: str = CHARACTERS) -> list[str]:
    return _check_length(value, SUBDOMAIN_MAX_LENGTH, unit) + _check_format(value, _DNS1123_SUBDOMAIN)


def check_dns1123_subdomain_with_underscore(value: str) -> list[str]:
    return _check_length(value, SUBDOMAIN_MAX_LENGTH) + _check_format(
        value, _DNS1123_SUBDOMAIN_WITH_UNDERSCORE
    )


def check_wildcard_dns1123_subdomain(value: str) -> list[str]:
    return _check_length(value, SUBDOMAIN_MAX_LENGTH) + _check_format(value, _WILDCARD_DNS1123_SUBDOMAIN)


def check_dns1035_label(value: str) -> list[str]:
    return _check_length(value, LABEL_MAX_LENGTH) + _check_format(value, _DNS1035_LABEL)


def mask_trailing_dash(prefix: str) -> str:
    """Return a `generateName` in a form that can be checked as a name: a trailing dash is valid there."""
    # Upstream removes the character before the dash, too.
    return f"{prefix[:-2]}a" if len(prefix) > 1 and prefix.endswith("-") else prefix


# --- keys and values of labels


def check_label_key(value: str) -> list[str]:
    """Check a qualified name: the key of a label or annotation, a finalizer, or the name of a resource."""
    return (
        []
        if len(value) <= _MAX_CACHED_KEY_LENGTH and _is_label_key_cached(value)
        else _label_key_problems(value)
    )


# Every write checks keys, and nearly always the same few. Long keys are not cached, to limit the memory.
_MAX_CACHED_KEY_LENGTH: Final = 80


@lru_cache(maxsize=4096)
def _is_label_key_cached(value: str) -> bool:
    return not _label_key_problems(value)


def _label_key_problems(value: str) -> list[str]:
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        optional_prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_KEY_NAME.message} {optional_prefix}"]
    problems = []
    if slash:
        part_problems = check_dns1123_subdomain(prefix, BYTES) if prefix else [EMPTY]
        problems = [f"prefix part {problem}" for problem in part_problems]
    part_problems = _check_length(name, LABEL_MAX_LENGTH, BYTES) if name else [EMPTY]
    part_problems += _check_format(name, _KEY_NAME)
    return problems + [f"name part {problem}" for problem in part_problems]


def check_label_value(value: str) -> list[str]:
    return _check_length(value, LABEL_MAX_LENGTH, BYTES) + _check_format(value, _LABEL_VALUE)


def check_kube_finalizer_name(value: str) -> list[str]:
    """Check a finalizer; only Kubernetes' own may have no domain."""
    problems = check_label_key(value)
    if "/" not in value and value not in STANDARD_FINALIZERS:
        problems.append("name is neither a standard finalizer name nor is it fully qualified")
    return problems


# --- names inside objects


def check_path_segment_name(value: str) -> list[str]:
    """Check a name that only has to be valid as a segment of a URL's path."""
    return [f"may not be '{value}'"] if value in (".", "..") else check_path_segment_prefix(value)


def check_path_segment_prefix(value: str) -> list[str]:
    return [f"may not contain '{illegal}'" for illegal in "/%" if illegal in value]


def check_c_identifier(value: str) -> list[str]:
    return _check_format(value, _C_IDENTIFIER)


def check_env_var_name(value: str) -> list[str]:
    return _check_format(value, _ENV_VAR_NAME) + _check_parent_directory(value)


def check_relaxed_env_var_name(value: str) -> list[str]:
    problems = [] if value else [f"environment variable name {EMPTY}"]
    if not (value.isascii() and value.isprintable() and "=" not in value):
        problems.append(
            "a valid environment variable name must consist only of printable ASCII characters other than '='"
        )
    return problems


def check_config_map_key(value: str) -> list[str]:
    problems = _check_length(value, SUBDOMAIN_MAX_LENGTH) + _check_format(value, _CONFIG_MAP_KEY)
    return problems + _check_parent_directory(value)


def check_http_path(value: str) -> list[str]:
    """Check the part after the domain in a domain-prefixed path."""
    return _check_format(value, _HTTP_PATH)


def check_http_header_name(value: str) -> list[str]:
    return _check_format(value, _HTTP_HEADER_NAME)


def check_port_name(value: str) -> list[str]:
    problems = _check_length(value, PORT_NAME_MAX_LENGTH)
    if not re.fullmatch("[-a-z0-9]+", value):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", value):
        problems.append("must contain at least one letter (a-z)")
    if "--" in value:
        problems.append("must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return problems


# --- numbers


def check_percent(value: str) -> list[str]:
    return _check_format(value, _PERCENT)


def check_port_number(value: int) -> list[str]:
    return check_in_range(value, 1, 65535)


def check_in_range(value: int, minimum: int, maximum: int) -> list[str]:
    return [] if minimum <= value <= maximum else [f"must be between {minimum} and {maximum}, inclusive"]


# --- what the checks share


def _check_length(value: str, limit: int, unit: str = CHARACTERS) -> list[str]:
    size = len(value) if value.isascii() else len(value.encode())
    return [f"must be no more than {limit} {unit}"] if size > limit else []


def _check_format(value: str, form: _Format) -> list[str]:
    return [] if form.matches(value) else [form.message]


def _check_parent_directory(value: str) -> list[str]:
    """Check that a key, which becomes a file name, does not lead out of its directory."""
    if value in (".", ".."):
        return [f"must not be '{value}'"]
    return ["must not start with '..'"] if value.startswith("..") else []


def generate_name(base: str, source: randomness.Random) -> str:
    """Return a name for a `generateName`: the base, shortened so that the name is valid as a label, and a random suffix."""
    return base[:GENERATED_BASE_MAX_LENGTH] + randomness.suffix(source)
