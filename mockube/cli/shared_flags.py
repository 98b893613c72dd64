"""Flags that several commands share: the name of the cluster, its options, the output format."""

import argparse
from argparse import ArgumentTypeError
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from mockube.apimachinery.schema import minors
from mockube.component_base.flags import non_negative_int
from mockube.component_base.release_options import read_minor
from mockube.container_runtime.simulation_values import (
    ASSUME,
    AUTO,
    FAIL,
    HOST,
    NAMESPACES,
    PROCESS,
    RUN,
    SIMULATED,
    WAIT,
    parse_unknown_programs,
)
from mockube.failure import UsageError
from mockube.kubelet.installation import MAX_CONTROL_PLANES
from mockube.kubelet.node_pools import deprecated
from mockube.kubelet.node_pools.flag import read_nodes
from mockube.kubelet.node_pools.pool import NodePools
from mockube.launch import DEFAULT_NODES, KUBEADM, MINIMAL, NAME, NODES, PACKS, PROFILES, LaunchOptions

from .parsing import CommandParser, FlagGroup

CLUSTER: Final = "Cluster"
PODS: Final = "Nodes and pods"
"""The groups of flags in the help of commands."""

_SERVICE_NETWORK: Final = "--service-cluster-ip-range"
START_TIMES: Final = 2
"""The lowest log level at which a command prints how long the start of its cluster takes."""


def add_name(flags: CommandParser | FlagGroup) -> None:
    flags.add_argument("--name", default=NAME, help=f"the cluster's name ({NAME})")


class _OldName(argparse.Action):
    """The action of a deprecated name of a flag, which has the `dest` of the other one."""

    def __call__(self, _parser: Any, options: argparse.Namespace, value: Any, flag: Any = None) -> None:
        deprecated.report([str(flag)], f"--{self.dest.replace('_', '-')}={value}")
        setattr(options, self.dest, value)


def add_short_name(parser: CommandParser) -> None:
    """Add -n for the cluster's name, to commands that had it in a release; in others -n is the namespace, or unknown."""
    replacement = "use `--name` instead"
    parser.add_deprecated(
        "-n",
        str,
        metavar="NAME",
        replacement=replacement,
        action=_OldName,
        dest="name",
        default=argparse.SUPPRESS,
    )


def add_chosen_name(parser: CommandParser) -> None:
    """Add the cluster's name to a command for which $KUBECONFIG chooses the cluster, too: see `chosen_name`."""
    parser.add_argument("--name", help=f"the cluster's name (that of $KUBECONFIG, or {NAME})")


def add_namespace(parser: CommandParser, help_text: str, default: str = "default") -> None:
    """Add the namespace of an object. Its short flag is that of kubectl, and no command has another meaning of it."""
    parser.add_argument(*spellings("namespace"), default=default, metavar="NAMESPACE", help=help_text)


def spellings(name: str) -> Sequence[str]:
    """Return the spellings of a flag that selects objects by a property."""
    return ["-n", "--namespace"] if name == "namespace" else [f"--{name}"]


def add_output(parser: CommandParser, *more: str) -> None:
    *others, last = "json", *more
    formats = f"{', '.join(others)} or {last}" if others else last
    parser.add_argument(
        "-o",
        "--output",
        choices=["json", *more],
        metavar="FORMAT",
        help=f"{formats} for programs",
    )


def add_cluster_flags(flags: FlagGroup) -> None:
    add_nodes(flags, f"simulated nodes: a number, pools or a file ({NODES})", DEFAULT_NODES)
    flags.add_argument(
        "--packs",
        default=PACKS,
        metavar="NAMES",
        help=f"packs of more kinds ({PACKS or 'none'})",
    )
    add_version(flags)


def add_profile(flags: FlagGroup, default: str) -> None:
    flags.add_argument(
        "--profile",
        choices=PROFILES,
        default=default,
        metavar="PROFILE",
        help=f"as {KUBEADM} makes it, or {MINIMAL} ({default})",
    )
    flags.add_argument(
        "--control-planes",
        type=read_control_planes,
        default=1,
        metavar="COUNT",
        help=f"control-plane nodes of {KUBEADM} (1)",
    )


def read_control_planes(text: str) -> int:
    count = non_negative_int(text)
    if not 1 <= count <= MAX_CONTROL_PLANES:
        raise ArgumentTypeError(f"{count} is not a number from 1 to {MAX_CONTROL_PLANES}")
    return count


def check_control_planes(options: argparse.Namespace, profile: str) -> None:
    """Refuse control-plane nodes of a cluster that has none."""
    if "control_planes" in options.set_flags and profile == MINIMAL:
        raise UsageError(f"--control-planes needs --profile={KUBEADM}")


def check_networks(options: LaunchOptions) -> None:
    """Refuse a range of Services in which the profile kubeadm has no room."""
    if options.is_kubeadm and any(flag.startswith(_SERVICE_NETWORK) for flag in options.flags):
        from mockube.kubeadm.installation import problem_of  # noqa: PLC0415 - few clusters have another range

        if problem := problem_of(options):
            raise UsageError(problem)


def add_nodes(flags: CommandParser | FlagGroup, help_text: str, default: NodePools) -> None:
    flags.add_argument(
        "--nodes",
        "--simulate-nodes",
        dest="simulate_nodes",
        type=read_nodes,
        default=default,
        metavar="NODES",
        help=help_text,
    )


def add_version(flags: CommandParser | FlagGroup) -> None:
    flags.add_argument(
        "--kubernetes-version",
        type=read_minor,
        default=minors.NEWEST,
        metavar="MINOR",
        help=f"{minors.OLDER[-1]} to {minors.NEWEST} ({minors.NEWEST})",
    )


def version_flags(options: argparse.Namespace) -> Sequence[str]:
    """Return the flag of both processes for the minor release, if it is not the default."""
    minor = options.kubernetes_version
    return () if minor == minors.NEWEST else (f"--kubernetes-version={minor}",)


def add_runtime(parser: CommandParser) -> None:
    """Add the flags of the container runtime; `mockube up` has them among the manager's flags."""
    flags = parser.group(PODS)
    flags.add_argument(
        "--container-runtime",
        choices=[SIMULATED, PROCESS],
        default=SIMULATED,
        metavar="RUNTIME",
        help=f"{SIMULATED}, or {PROCESS}: see --images ({SIMULATED})",
    )
    flags.add_argument(
        "--pod-network",
        choices=[AUTO, NAMESPACES, HOST],
        default=AUTO,
        metavar="NETWORK",
        help=f"network of pods whose containers run as processes: {NAMESPACES}, {HOST}, or {AUTO}, which is the first where "
        f"the kernel permits it ({AUTO})",
    )
    flags.add_argument(
        "--unknown-programs",
        choices=[ASSUME, WAIT, FAIL],
        default=ASSUME,
        metavar="RESULT",
        help=f"what becomes of programs that are not simulated: {ASSUME} that they work, let the container {WAIT}, "
        f"or {FAIL} with exit code 127 ({ASSUME})",
    )
    parser.add_deprecated(
        "--simulate-unknown-programs",
        parse_unknown_programs,
        metavar="RESULT",
        replacement="use `--unknown-programs` instead",
        dest="unknown_programs",
        action=_OldName,
        default=argparse.SUPPRESS,
    )
    flags.add_argument(
        "--unknown-images",
        choices=[RUN, FAIL],
        default=RUN,
        metavar="RESULT",
        help=f"what becomes of containers whose images are not known: {RUN}, or {FAIL}, so that they cannot be pulled ({RUN})",
    )
    flags.add_argument(
        "--images",
        type=Path,
        metavar="FILE",
        help="how images run, and which as processes (none)",
    )
