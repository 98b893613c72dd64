"""Semantic versions: `semver('1.2.3-rc.1')`. Errors are those of the library that Kubernetes parses them with."""

import re
from collections.abc import Callable
from typing import Any, Final

from mockube.apimachinery import gotext
from mockube.apimachinery.cel.declarations import declare
from mockube.apimachinery.cel.values import UINT_MAX, CelError, Opaque

DECLARED: Final = declare(
    """
    semver string_to_semver (string) -> kubernetes.Semver
    semver string_bool_to_semver (string, bool) -> kubernetes.Semver
    isSemver is_semver_string (string) -> bool
    isSemver is_semver_string_bool (string, bool) -> bool
    isGreaterThan semver_is_greater_than kubernetes.Semver.(kubernetes.Semver) -> bool
    isLessThan semver_is_less_than kubernetes.Semver.(kubernetes.Semver) -> bool
    compareTo semver_compare_to kubernetes.Semver.(kubernetes.Semver) -> int
    major semver_major kubernetes.Semver.() -> int
    minor semver_minor kubernetes.Semver.() -> int
    patch semver_patch kubernetes.Semver.() -> int
    """
)
_ALPHANUMERIC = re.compile("[0-9A-Za-z-]*")


class Semver(Opaque):
    __slots__ = ("build", "numbers", "pre")
    type_name = "kubernetes.Semver"

    def __init__(self, numbers: tuple[int, ...], pre: tuple[int | str, ...], build: tuple[str, ...]) -> None:
        self.numbers = numbers
        self.pre = pre
        self.build = build

    def equals(self, other: object, /) -> bool:
        if not isinstance(other, Semver):
            raise CelError("no such overload")
        return compare(self, other) == 0

    def __str__(self) -> str:
        text = ".".join(map(str, self.numbers))
        text += f"-{'.'.join(map(str, self.pre))}" if self.pre else ""
        return text + (f"+{'.'.join(self.build)}" if self.build else "")


def _number(text: str, name: str) -> int:
    unexpected = re.search("[^0-9]", text)
    if unexpected:
        raise CelError(f"Invalid character(s) found in {name} number {gotext.quote(text)}")
    if len(text) > 1 and text[0] == "0":
        raise CelError(
            f"{name[0].upper()}{name[1:]} number must not contain leading zeroes {gotext.quote(text)}"
        )
    if not text:
        raise CelError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > UINT_MAX:
        raise CelError(f'strconv.ParseUint: parsing "{text}": value out of range')
    return int(text)


def parse(text: str) -> Semver:
    if not text:
        raise CelError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise CelError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "major"), _number(parts[1], "minor")
    rest, plus, build = parts[2].partition("+")
    patch, dash, pre = rest.partition("-")
    numbers = (major, minor, _number(patch, "patch"))
    prerelease = tuple(map(_prerelease, pre.split("."))) if dash else ()
    build_parts = tuple(build.split(".")) if plus else ()
    for part in build_parts:
        if not part:
            raise CelError("Build meta data is empty")
        if not _ALPHANUMERIC.fullmatch(part):
            raise CelError(f"Invalid character(s) found in build meta data {gotext.quote(part)}")
    return Semver(numbers, prerelease, build_parts)


def _prerelease(part: str) -> int | str:
    if not part:
        raise CelError("Prerelease is empty")
    if part.isascii() and part.isdigit():
        if len(part) > 1 and part[0] == "0":
            raise CelError(f"Numeric PreRelease version must not contain leading zeroes {gotext.quote(part)}")
        return int(part) if len(part) < 30 else part
    if not _ALPHANUMERIC.fullmatch(part):
        raise CelError(f"Invalid character(s) found in prerelease {gotext.quote(part)}")
    return part


def _normalize(text: str) -> str:
    parts = text.removeprefix("v").split(".", 2)
    for i, part in enumerate(parts):
        if len(part) > 1:
            stripped = part.lstrip("0")
            parts[i] = stripped if stripped[:1] in tuple("0123456789") and stripped else f"0{stripped}"
    if len(parts) < 3:
        if any(char in parts[-1] for char in "+-"):
            raise CelError("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


def compare(left: Semver, right: Semver) -> int:
    if left.numbers != right.numbers:
        return 1 if left.numbers > right.numbers else -1
    if not left.pre or not right.pre:
        return int(not left.pre) - int(not right.pre)
    for a, b in zip(left.pre, right.pre, strict=False):
        if a != b:
            return _compare_pre(a, b)
    return (len(left.pre) > len(right.pre)) - (len(left.pre) < len(right.pre))


def _compare_pre(left: int | str, right: int | str) -> int:
    if isinstance(left, int) and isinstance(right, int):
        return 1 if left > right else -1
    if isinstance(left, int) or isinstance(right, int):
        return -1 if isinstance(left, int) else 1
    return 1 if left > right else -1


def _semver(text: str, normalize: bool = False) -> Semver:  # noqa: FBT001, FBT002 -- an argument of the function
    return parse(_normalize(text) if normalize else text)


def _is_semver(text: str, normalize: bool = False) -> bool:  # noqa: FBT001, FBT002 -- an argument of the function
    try:
        _semver(text, normalize)
    except CelError:
        return False
    return True


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "string_to_semver": _semver,
    "string_bool_to_semver": _semver,
    "is_semver_string": _is_semver,
    "is_semver_string_bool": _is_semver,
    "semver_is_greater_than": lambda left, right: compare(left, right) > 0,
    "semver_is_less_than": lambda left, right: compare(left, right) < 0,
    "semver_compare_to": compare,
    "semver_major": lambda version: version.numbers[0],
    "semver_minor": lambda version: version.numbers[1],
    "semver_patch": lambda version: version.numbers[2],
}
