"""The Kubernetes version of a process: the document of `/version`, and the flag --version."""

import platform
import re
import sys
from functools import cache
from typing import Any, Final, TypeAlias

from mockube.apimachinery.gotext import quote
from mockube.apimachinery.schema import minors

Document: TypeAlias = dict[str, Any]

_EMULATION_SINCE: Final = "1.33"
_SERVER_FIELDS: Final = ("emulation", "minCompatibility")
_RAW: Final = "raw"
_ARCHITECTURES: Final = {
    "x86_64": "amd64",
    "amd64": "amd64",
    "aarch64": "arm64",
    "arm64": "arm64",
    "i386": "386",
    "i686": "386",
    "armv6l": "arm",
    "armv7l": "arm",
    "ppc64le": "ppc64le",
    "s390x": "s390x",
    "riscv64": "riscv64",
    "loongarch64": "loong64",
}
"""Go's names of processor architectures, by the machine's name."""
_NUMBERS: Final = re.compile(r"\s*v?([0-9]+(?:\.[0-9]+)*)(.*)", re.ASCII | re.DOTALL)
_PARTS: Final = r"[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*"
_EXTRA: Final = re.compile(rf"(?:-({_PARTS}))?(?:\+({_PARTS}))?\s*", re.ASCII)


def version(minor: str = minors.NEWEST) -> str:
    """Return the release of a minor version, such as "1.37.2"."""
    return minors.RELEASES[minor]


def version_document(minor: str = minors.NEWEST, git_version: str = "") -> Document:
    """Return the document of `/version`; `git_version` replaces the release in it."""
    major, number, _ = version(minor).split(".")
    emulation = {
        "emulationMajor": major,
        "emulationMinor": number,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(number) - 1),
    }
    return {
        "major": major,
        "minor": number,
        **({} if minors.is_before(minor, _EMULATION_SINCE) else emulation),
        "gitVersion": git_version or f"v{version(minor)}",
        "gitCommit": _commit(),
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation().lower(),
        "platform": f"{platform.system().lower()}/{architecture(platform.machine())}",
    }


@cache
def _commit() -> str:
    from importlib.metadata import version as installed  # noqa: PLC0415 - 1.5 MB, in processes that need a release only

    return f"mockube-{installed('mockube')}"


def openapi_version(minor: str) -> str:
    """Return the version in OpenAPI documents: the release before 1.31, the minor version since."""
    return f"v{version(minor)}" if minors.is_before(minor, "1.31") else minor


def architecture(machine: str) -> str:
    """Return Go's name of a processor architecture."""
    return _ARCHITECTURES.get(machine.lower(), machine)


# --- the flag


def print_version(flag: str, minor: str = minors.NEWEST) -> None:
    """Print the version and end the process if --version is set."""
    if text := version_text(flag, minor):
        sys.stdout.write(f"{text}\n")
        sys.exit(0)


def version_text(flag: str, minor: str = minors.NEWEST) -> str:
    """Return the text that --version prints before the process exits; "" if it does not exit."""
    if flag == _RAW:
        return f"version.Info{{{', '.join(_fields(minor))}}}"
    return f"Kubernetes v{version(minor)}" if flag == "true" else ""


def _fields(minor: str) -> list[str]:
    """Return the fields of Go's version.Info. Those about emulation are empty: they are unknown before a server runs."""
    return [
        f"{name[0].upper()}{name[1:]}:{quote('' if name.startswith(_SERVER_FIELDS) else text)}"
        for name, text in version_document(minor).items()
    ]


def version_problem(flag: str, minor: str = minors.NEWEST) -> str:
    """Return the error of a version to report instead of the release; it must have the same major, minor and patch."""
    default = f"v{version(minor)}"
    if not flag.startswith("v") or flag == default:
        return ""
    if problem := _semantic_version_problem(flag):
        return problem
    if _components(flag) != _components(default):
        return f"version {quote(flag)} must match major/minor/patch of default version {quote(default)}"
    return ""


def _components(text: str) -> str:
    match = _NUMBERS.match(text)
    return match[1] if match else ""


def _semantic_version_problem(text: str) -> str:
    """Return upstream's error if a text is not a semantic version, or ""."""
    match = _NUMBERS.fullmatch(text)
    if match is None:
        return f"could not parse {quote(text)} as version"
    components = match[1].split(".")
    if len(components) != 3:
        return f"illegal version string {quote(text)}"
    if zero := _first_zero_prefixed(components):
        return f"illegal zero-prefixed version component {quote(zero)} in {quote(text)}"
    extra = _EXTRA.fullmatch(match[2])
    if extra is None:
        return f"could not parse pre-release/metadata ({match[2]}) in version {quote(text)}"
    if zero := _first_zero_prefixed([part for part in (extra[1] or "").split(".") if part.isdigit()]):
        return f"illegal zero-prefixed version component {quote(zero)} in {quote(text)}"
    return ""


def _first_zero_prefixed(components: list[str]) -> str:
    return next((part for part in components if part.startswith("0") and part != "0"), "")
