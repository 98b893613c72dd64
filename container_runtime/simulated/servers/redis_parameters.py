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
    "replicaof": "",
    "masterauth": "",
    "replica-read-only": "yes",
}
_OLD_NAMES: Final = {"slaveof": "replicaof", "slave-read-only": "replica-read-only"}
_SIZES: Final = frozenset({"maxmemory"})
_SIZE: Final = re.compile(r"(\d{1,15})([kmg]b?)?", re.IGNORECASE)
_UNITS: Final = {"k": 1000, "kb": 1 << 10, "m": 10**6, "mb": 1 << 20, "g": 10**9, "gb": 1 << 30}
_MAX_LINES: Final = 10_000
_REPLICAS: Final = frozenset({"slave", "replica"})
_VARIABLES: Final = (("REDIS", "MASTER"), ("VALKEY", "PRIMARY"))
"""The beginnings of the variables with which Bitnami's images make a server a replica: those of the server, and of its leader."""


def current_name(name: str) -> str:
    """Return the name of a parameter in lower case; the present one of a parameter with an old name."""
    return _OLD_NAMES.get(name.lower(), name.lower())


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
        name = current_name(name)
        if name in DEFAULTS:
            found[name] = parameter(name, value.strip().strip("\"'"))
    return found


def parameters_of_options(words: Iterable[str]) -> dict[str, str]:
    """Return the parameters that a command line sets, such as `--maxmemory 2mb`."""
    found: dict[str, str] = {}
    name = ""
    for word in words:
        if word.startswith("--"):
            name = current_name(word[2:])
            found[name] = ""
        elif name in found:
            found[name] = f"{found[name]} {word}".strip()
    return {name: parameter(name, value) for name, value in found.items() if name in DEFAULTS}


def parameters_of_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters that Bitnami's images take from variables: those of a replica."""
    for server, leader in _VARIABLES:
        host = variables.get(f"{server}_{leader}_HOST", "")
        if host and variables.get(f"{server}_REPLICATION_MODE") in _REPLICAS:
            port = variables.get(f"{server}_{leader}_PORT_NUMBER") or DEFAULTS["port"]
            password = variables.get(f"{server}_{leader}_PASSWORD", "")
            return {"replicaof": f"{host} {port}", "masterauth": password}
    return {}
