"""Flags in the syntax of Kubernetes' programs: `--flag value`, `--flag=value`, `--a_b` for `--a-b`, lists, durations.

A flag is a field of a settings record, annotated with a `Flag`; `Sections` builds a parser from such records. A reader
converts a flag's text to its value or raises an error, to which argparse adds the flag's name.
"""

import argparse
import dataclasses
import math
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from ipaddress import AddressValueError, NetmaskValueError, ip_address, ip_network
from typing import Any, Final, get_type_hints

from mockube.apimachinery.durations import DurationError, parse_duration
from mockube.apimachinery.gotext import parse_bool, quote
from mockube.apimachinery.names import check_dns1123_subdomain

DEFAULT_SERVICE_NETWORKS: Final = ("10.0.0.0/24",)
MIN_SERVICE_ADDRESSES: Final = 8


@dataclasses.dataclass(frozen=True, slots=True)
class Flag:
    """The annotation of a field in a settings record. The flag has the field's name."""

    help: str
    read: Callable[[str], Any] = str
    _: dataclasses.KW_ONLY
    metavar: str = ""
    short: str = ""
    repeats: bool = False
    """Whether the flag can be given more than once; the values are collected in a tuple."""
    value_if_bare: str = ""
    """The value of the flag if it is given without one, as pflag's NoOptDefVal; "" if a value is required."""
    alias: str = ""
    """Another name of the flag."""
    topic: str = ""
    """The heading under which the main page of `mockube up --help` lists the flag; "" if only a page of its process does."""
    deprecated: str = ""
    """What to use instead, if the flag is deprecated: the help does not list it, as that of Kubernetes' programs."""


# --- readers


def boolean(text: str) -> bool:
    try:
        return parse_bool(text)
    except ValueError as error:
        raise ArgumentTypeError(f"{quote(text)} is neither true nor false") from error


def feature_gate(text: str) -> tuple[str, bool]:
    """Return the name and the value of a feature gate such as `A=true`."""
    name, equals, word = (part.strip() for part in text.partition("="))
    if not equals:
        raise ArgumentTypeError(f"missing bool value for {name}")
    try:
        return name, parse_bool(word)
    except ValueError as error:
        raise ArgumentTypeError(f"invalid value of {name}={word}, err: {error}") from error


def version(text: str) -> str:
    """Read a boolean, `raw`, or a version, which begins with v."""
    return text if text == "raw" or text.startswith("v") else str(boolean(text)).lower()


def port(text: str) -> int:
    number = non_negative_int(text)
    if number > 65535:
        raise ArgumentTypeError(f"{number} is not a port: at most 65535")
    return number


def port_range(text: str) -> range:
    """Read the first and the last port of a range: `30000-32767`."""
    low, dash, high = text.partition("-")
    if not dash or port(low) > port(high):
        raise ArgumentTypeError(f"{quote(text)} is not a range of ports such as 30000-32767")
    return range(port(low), port(high) + 1)


def non_negative_int(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ArgumentTypeError(f"{quote(text)} is not a whole number, 0 or more")
    return int(text)


def positive_int(text: str) -> int:
    """Read a number that must be at least 1, such as a number of workers."""
    number = non_negative_int(text)
    if number == 0:
        raise ArgumentTypeError("at least 1 is needed")
    return number


def positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < math.inf:
        raise ArgumentTypeError(f"{quote(text)} is not a number above 0")
    return number


def seconds(text: str) -> float:
    """Read a Go duration that is not negative."""
    try:
        span = parse_duration(text)
    except DurationError as error:
        hint = ": the largest unit is h, so that 30 days are 720h" if text.endswith("d") else ""
        if text.isdecimal():
            hint = f": use {text}s for seconds"
        raise ArgumentTypeError(f"{error}{hint}") from error
    if span < 0:
        raise ArgumentTypeError(f"{text} is negative: use 0s or more")
    return span / 1e9


def positive_duration(text: str) -> float:
    """Read a Go duration that is longer than 0."""
    if (span := seconds(text)) > 0:
        return span
    raise ArgumentTypeError(f"{text} is too short: use more than 0s")


def address(text: str) -> str:
    try:
        return str(ip_address(text))
    except ValueError as error:
        raise ArgumentTypeError(f"{quote(text)} is not an IP address") from error


def hosts(text: str) -> tuple[str, ...]:
    """Read a list of host names and IP addresses."""
    return tuple(map(_host, comma_separated(text)))


def host_patterns(text: str) -> tuple[str, ...]:
    """Read a list of host names and IP addresses. The * in *.example.com matches any label, * alone any name."""
    return tuple(word if word == "*" else _host_pattern(word) for word in comma_separated(text))


def _host_pattern(text: str) -> str:
    if text.startswith("*."):
        return f"*.{_host(text.removeprefix('*.'))}"
    return _host(text)


def _host(text: str) -> str:
    if ":" in text:
        return address(text)
    if check_dns1123_subdomain(text):
        raise ArgumentTypeError(f"{quote(text)} is neither a host's name nor an IP address")
    return text


def network(text: str) -> str:
    """Read one range of addresses in CIDR notation, without host bits."""
    try:
        return str(ip_network(text))
    except (AddressValueError, NetmaskValueError, ValueError) as error:
        raise ArgumentTypeError(
            f"{quote(text)} is not a range of addresses such as 10.0.0.0/24: {error}"
        ) from error


def service_networks(text: str) -> tuple[str, ...]:
    """Read the ranges of cluster IPs: one, or one of each address family."""
    ranges = networks(text) or DEFAULT_SERVICE_NETWORKS
    if ip_network(ranges[0]).num_addresses < MIN_SERVICE_ADDRESSES:
        raise ArgumentTypeError(
            f"the service cluster IP range must be at least {MIN_SERVICE_ADDRESSES} IP addresses"
        )
    return ranges


def networks(text: str) -> tuple[str, ...]:
    """Read a list of at most one range of addresses per address family; host bits are ignored, as upstream does."""
    ranges = tuple(_network(word) for word in comma_separated(text))
    families = {ip_network(range_text).version for range_text in ranges}
    if len(ranges) > 2 or len(families) < len(ranges):
        raise ArgumentTypeError(f"{quote(text)} has more than one range of an address family")
    return ranges


def _network(text: str) -> str:
    try:
        return str(ip_network(text, strict=False))
    except ValueError as error:
        raise ArgumentTypeError(f"{quote(text)} is not a range of addresses such as 10.0.0.0/24") from error


def comma_separated(text: str) -> tuple[str, ...]:
    """Split a list at its commas; blanks around the elements and empty elements are dropped."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def choice(*allowed: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in allowed:
            raise ArgumentTypeError(f"{quote(text)} is not one of {', '.join(allowed)}")
        return text

    return read


VERSION = Flag(
    "print the version and exit; raw prints all details; vX.Y.Z-ANY reports this version of the same release (false)",
    version,
    metavar="true|raw|VERSION",
    value_if_bare="true",
)


# --- the parser


class Sections:
    """A parser for settings records by name. Each record is a section of the help, with its docstring as the title."""

    def __init__(self, sections: Mapping[str, type[Any]], *, ignored: Iterable[str], **options: Any) -> None:
        self._sections = sections
        self._ignored = {name.replace("-", "_"): name for name in ignored}
        self.parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False, **options)
        self._flag_names: list[str] = []
        for section, record in sections.items():
            group = self.parser.add_argument_group(record.__doc__)
            for name, flag in flags_of(record).items():
                self._flag_names += filter(None, (name, flag.alias))
                _add_argument(group, section, name, flag)
        self.parser.add_argument_group("Help").add_argument(
            "-h", "--help", action="help", help="print this help and exit"
        )
        # In a group, because argparse constructs a formatter of the help for each flag that is in none.
        hidden = self.parser.add_argument_group()
        for dest, name in self._ignored.items():
            hidden.add_argument(
                f"--{name}", dest=dest, nargs="?", default=argparse.SUPPRESS, help=argparse.SUPPRESS
            )

    def parse(
        self, arguments: Sequence[str], environment: Mapping[str, str], prefix: str
    ) -> tuple[dict[str, Any], list[str]]:
        """Return a record for each section, and the names of the ignored flags in the arguments.

        The variable `PREFIX_A_B` in the environment sets `--a-b`; the argument overrides it.
        """
        values = vars(
            self.parser.parse_args(
                [
                    *self._from_environment(environment, prefix),
                    *self._join_values(map(_with_dashes, arguments)),
                ]
            )
        )
        records = {
            section: record(**_section_values(values, section)) for section, record in self._sections.items()
        }
        return records, [name for dest, name in self._ignored.items() if dest in values]

    def _join_values(self, arguments: Iterable[str]) -> Iterator[str]:
        """Join each flag that needs a value with the next argument, as pflag does: the value may begin with a dash."""
        rest = iter(arguments)
        for argument in rest:
            action = self.parser._option_string_actions.get(argument)  # noqa: SLF001 - argparse has no public way
            needs_value = argument.startswith("--") and action is not None and action.nargs is None
            value = next(rest, None) if needs_value else None
            yield argument if value is None else f"{argument}={value}"

    def _from_environment(self, environment: Mapping[str, str], prefix: str) -> list[str]:
        values = {name: environment.get(f"{prefix}_{name.upper()}") for name in self._flag_names}
        return [f"--{name.replace('_', '-')}={value}" for name, value in values.items() if value is not None]


def flags_of(record: type[Any]) -> Mapping[str, Flag]:
    """Return the flags of a settings record, by field."""
    hints = get_type_hints(record, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items()}


def flag_names(name: str, flag: Flag) -> Sequence[str]:
    """Return the names of a flag on a command line: the short one, its field's, and the alias."""
    short = [f"-{flag.short}"] if flag.short else []
    return [*short, *(f"--{text.replace('_', '-')}" for text in (name, flag.alias) if text)]


def argparse_options(name: str, flag: Flag, read: Callable[[str], Any]) -> dict[str, Any]:
    """Return the argparse options of a flag whose texts are converted by `read`."""
    options: dict[str, Any] = {
        "type": read,
        "help": argparse.SUPPRESS if flag.deprecated else flag.help.replace("%", "%%"),
        "metavar": flag.metavar or name.rpartition("_")[2].upper(),
    }
    if flag.read is boolean:
        options |= {"nargs": "?", "const": read("true"), "metavar": "true|false"}
    if flag.value_if_bare:
        options |= {"nargs": "?", "const": read(flag.value_if_bare)}
    return options


def _add_argument(group: Any, section: str, name: str, flag: Flag) -> None:
    options = argparse_options(name, flag, flag.read)
    if flag.repeats:
        options["action"] = "append"
    group.add_argument(
        *flag_names(name, flag), dest=f"{section}.{name}", default=argparse.SUPPRESS, **options
    )


def _section_values(values: Mapping[str, Any], section: str) -> dict[str, Any]:
    section_values = {
        dest.removeprefix(f"{section}."): value
        for dest, value in values.items()
        if dest.startswith(f"{section}.")
    }
    return {name: _join_repetitions(value) for name, value in section_values.items()}


def _join_repetitions(value: Any) -> Any:
    """Join the values of a repeated flag into one tuple."""
    if not isinstance(value, list):
        return value
    return tuple(part for item in value for part in (item if isinstance(item, tuple) else (item,)))


def _with_dashes(argument: str) -> str:
    if not argument.startswith("--"):
        return argument
    name, equals, value = argument.partition("=")
    return name.replace("_", "-") + equals + value
