"""The flags of the two processes as flags of `mockube up`: a flag goes to the process that has it.

A flag of both goes to the API server, but flags of logging go to both. A flag that only upstream's programs have is
accepted, as the processes accept it, and named in a warning of theirs.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from mockube.apimachinery.flags import Flag, boolean, flags_of
from mockube.apimachinery.klog import Logging
from mockube.apiserver.config import settings
from mockube.apiserver.config.upstream import IGNORED as SERVER_IGNORED
from mockube.cli.parsing import Parser
from mockube.controller_manager.config import settings as manager
from mockube.controller_manager.config.upstream import IGNORED as MANAGER_IGNORED

SERVER: Final = "API server"
MANAGER: Final = "Controller manager"
BOTH: Final = "Both"

OURS: Final = frozenset(
    {
        "kubeconfig",
        "kubernetes_version",
        "master",
        "packs",
        "simulate_nodes",
        "write_kubeconfig",
        "write_manager_kubeconfig",
        "data_dir",
    }
)
"""Flags of theirs that `mockube up` has itself, or whose value it sets."""


def add_passed(parser: Parser) -> None:
    known_flags = set(OURS)
    for component, sections in ((SERVER, settings.SECTIONS), (MANAGER, manager.SECTIONS)):
        for record in sections.values():
            section_owner = BOTH if record is Logging else component
            group = parser.add_argument_group(f"{section_owner}: {record.__doc__}")
            for name, flag in flags_of(record).items():
                if name not in known_flags:
                    known_flags.add(name)
                    _add(group, section_owner, name, flag)
    for component, names in ((SERVER, SERVER_IGNORED), (MANAGER, MANAGER_IGNORED)):
        for dashed in names:
            if dashed.replace("-", "_") not in known_flags:
                known_flags.add(dashed.replace("-", "_"))
                parser.add_argument(f"--{dashed}", dest=f"{component}.{dashed}", **_SILENT)


_SILENT: Final[Mapping[str, Any]] = {
    "action": "append",
    "default": [],
    "nargs": "?",
    "const": "",
    "help": argparse.SUPPRESS,
}


def split_flags(options: argparse.Namespace) -> tuple[Sequence[str], Sequence[str]]:
    """Return the flags for the API server and for the controller manager."""
    flags: dict[str, list[str]] = {SERVER: [], MANAGER: [], BOTH: []}
    for dest, texts in vars(options).items():
        component, dot, name = dest.partition(".")
        if dot:
            flags[component] += [f"--{name}={text}" if text else f"--{name}" for text in texts]
    return [*flags[SERVER], *flags[BOTH]], [*flags[MANAGER], *flags[BOTH]]


def _add(group: Any, component: str, name: str, flag: Flag) -> None:
    dashed = name.replace("_", "-")
    short = [f"-{flag.short}"] if flag.short else []
    options: dict[str, Any] = {
        "action": "append",
        "default": [],
        "dest": f"{component}.{dashed}",
        "help": flag.help.replace("%", "%%"),
        "metavar": flag.metavar or name.rpartition("_")[2].upper(),
        "type": _check_early(flag),
    }
    if flag.read is boolean:
        options |= {"nargs": "?", "const": "true", "metavar": "true|false"}
    group.add_argument(*short, f"--{dashed}", **options)


def _check_early(flag: Flag) -> Callable[[str], str]:
    """What cannot be read is refused here already, and handed on as it was given if it can."""

    def read(text: str) -> str:
        flag.read(text)
        return text

    return read
