"""The flags of the two processes of a cluster, which `mockube up` passes to the process that has them."""

import argparse
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from mockube.apiserver.config import settings
from mockube.apiserver.config.upstream import IGNORED as SERVER_IGNORED
from mockube.component_base.flags import Flag, argparse_options, flag_names, flags_of
from mockube.component_base.klog import Logging
from mockube.component_base.packs import PackError, flags_of_packs, own_pack_names, selected_packs
from mockube.controller_manager.config import settings as manager
from mockube.controller_manager.config.upstream import IGNORED as MANAGER_IGNORED
from mockube.failure import UsageError

from .parsing import PREFIX, CommandParser, FlagGroup

SERVER_PAGE: Final = "apiserver"
MANAGER_PAGE: Final = "controller-manager"
"""The pages of the help with the flags of one process."""

SERVER: Final = "API server"
MANAGER: Final = "Controller manager"
BOTH: Final = "Both"

UP_FLAGS: Final = frozenset(
    {
        "kubeconfig",
        "kubernetes_version",
        "master",
        "packs",
        "simulate_nodes",
        "write_kubeconfig",
        "write_manager_kubeconfig",
        "component_urls",
        "fork_socket",
        "ready_after_controllers",
        "write_component_urls",
        "data_dir",
        "installation",
        "kubeadm_pod_network",
        "kubeadm_endpoint",
        "kubeadm_storage_class",
    }
)
"""Flags of the two processes that `mockube up` defines itself, or that it sets."""
PAGES: Final[Mapping[str, Sequence[str]]] = {
    SERVER: [SERVER_PAGE],
    MANAGER: [MANAGER_PAGE],
    BOTH: [SERVER_PAGE, MANAGER_PAGE],
}
FLAGS_OF_BOTH: Final = frozenset({"feature_gates"})
"""Flags that are passed to both processes, besides those of logging."""

_IGNORED_FLAG_OPTIONS: Final[Mapping[str, Any]] = {
    "action": "append",
    "default": [],
    "nargs": "?",
    "const": "",
    "help": argparse.SUPPRESS,
}
"""The argparse options of a flag that is accepted and passed, but has no effect."""


def add_process_flags(parser: CommandParser) -> None:
    """Add the flags of both processes. A flag that both have is passed to the API server, but logging flags and feature gates to both.

    A flag that only upstream's programs have is accepted and passed, and the process logs a warning.
    """
    known_flags = set(UP_FLAGS)
    records_of_manager = [*manager.SECTIONS.values(), *_flags_of_packs(parser)]
    for component, records in ((SERVER, settings.SECTIONS.values()), (MANAGER, records_of_manager)):
        for record in records:
            section_owner = BOTH if record is Logging else component
            group = parser.group(f"{section_owner}: {record.__doc__}", *PAGES[section_owner])
            for name, flag in flags_of(record).items():
                if name not in known_flags:
                    known_flags.add(name)
                    owner = BOTH if name in FLAGS_OF_BOTH else section_owner
                    action = _add_process_flag(group, owner, name, flag)
                    if flag.topic:
                        parser.group(flag.topic)._group_actions.append(action)  # noqa: SLF001 - argparse has no public way
    for component, names in ((SERVER, SERVER_IGNORED), (MANAGER, MANAGER_IGNORED)):
        for dashed in names:
            if dashed.replace("-", "_") not in known_flags:
                known_flags.add(dashed.replace("-", "_"))
                parser.add_argument(f"--{dashed}", dest=f"{component}.{dashed}", **_IGNORED_FLAG_OPTIONS)


def _flags_of_packs(parser: CommandParser) -> Iterable[type[Any]]:
    """Return the flags of mockube's own packs, and of those that the arguments select."""
    packs = dict.fromkeys(
        (*own_pack_names(), *selected_packs(parser.arguments or (), os.environ, PREFIX.rstrip("_")))
    )
    records = (*settings.SECTIONS.values(), *manager.SECTIONS.values())
    other_flags = (*parser.flags(), *MANAGER_IGNORED)
    try:
        return flags_of_packs(records, packs, other_flags=other_flags).values()
    except PackError as error:
        raise UsageError(f"--packs: {error}") from error


def split_flags(options: argparse.Namespace) -> tuple[Sequence[str], Sequence[str]]:
    """Return the flags for the API server and for the controller manager."""
    flags: dict[str, list[str]] = {SERVER: [], MANAGER: [], BOTH: []}
    for dest, texts in vars(options).items():
        component, dot, name = dest.partition(".")
        if dot:
            flags[component] += [f"--{name}={text}" if text else f"--{name}" for text in texts]
    return [*flags[SERVER], *flags[BOTH]], [*flags[MANAGER], *flags[BOTH]]


def _add_process_flag(group: FlagGroup, component: str, name: str, flag: Flag) -> argparse.Action:
    return group.add_argument(
        *flag_names(name, flag),
        action="append",
        default=[],
        dest=dest_of(component, name),
        **argparse_options(name, flag, _validator(flag)),
    )


def values_of_flag(options: argparse.Namespace, component: str, name: str) -> Sequence[str]:
    """Return the values of a flag of a process, in their order; none if the flag was not added."""
    values: Sequence[str] = vars(options).get(dest_of(component, name), ())
    return values


def dest_of(component: str, name: str) -> str:
    return f"{component}.{name.replace('_', '-')}"


def _validator(flag: Flag) -> Callable[[str], str]:
    """Return a function that rejects an invalid value, and returns a valid one unchanged."""

    def read(text: str) -> str:
        flag.read(text)
        return text

    return read
