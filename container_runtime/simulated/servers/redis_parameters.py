"""The parameters of Redis that `CONFIG GET` shows: by its configuration file and its options, or its defaults. Pure."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

DEFAULTS: Final[Mapping[str, str]] = {
    "maxmemory": "0",
    "maxmemory-policy": "noeviction",
    "maxclients": "10000",
    "appendonly": "no",
    "appendfsync": "everysec",
    "save": "3600 1 300 100 60 10000",
    "databases": "16",
    "timeout": "0",
    "port": "6379",
    "dir": "/data",
    "dbfilename": "dump.rdb",
    "requirepass": "",
    "loglevel": "notice",
    "tcp-keepalive": "300",
}
_SIZES: Final = frozenset({"maxmemory"})
_SIZE: Final = re.compile(r"(\d{1,15})([kmg]b?)?", re.IGNORECASE)
_UNITS: Final = {"k": 1000, "kb": 1 << 10, "m": 10**6, "mb": 1 << 20, "g": 10**9, "gb": 1 << 30}
_MAX_LINES: Final = 10_000


def parameter(name: str, value: str) -> str:
    """Return a value as Redis shows it: a size in bytes, others as they are written."""
    match = _SIZE.fullmatch(value) if name in _SIZES else None
    if match is None:
        return value
    return str(int(match[1]) * _UNITS.get((match[2] or "").lower(), 1))


def parameters_of_file(text: str) -> dict[str, str]:
    """Return the parameters of a configuration file."""
    found = {}
    for line in text.splitlines()[:_MAX_LINES]:
        name, _, value = line.strip().partition(" ")
        if name.lower() in DEFAULTS:
            found[name.lower()] = parameter(name.lower(), value.strip().strip("\"'"))
    return found


def parameters_of_options(words: Iterable[str]) -> dict[str, str]:
    """Return the parameters that a command line sets, such as `--maxmemory 2mb`."""
    found: dict[str, str] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name = word[2:].lower()
            found[name] = ""
        elif name in found:
            found[name] = f"{found[name]} {word}".strip()
    return {name: parameter(name, value) for name, value in found.items() if name in DEFAULTS}
