"""`mockube up`: start a cluster, and print the next commands."""

import argparse
import asyncio
import math
import os
import shlex
import shutil
import sys
from argparse import ArgumentTypeError
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from msgspec import Struct

from mockube.apiserver.config.exposure import exposure_warnings
from mockube.apiserver.config.settings import ENVIRONMENT
from mockube.apiserver.stored_release import change_of_release, last_minor
from mockube.clusters import named_cluster
from mockube.clusters.kubeconfigs import check_no_other_clusters
from mockube.clusters.logs import SUPERVISOR_LOG
from mockube.clusters.named_cluster import ClusterFolder, ClusterRecord, ClusterState
from mockube.clusters.ports import LOOPBACK, check_address, check_port_free, default_port
from mockube.clusters.profiles import Profile, stored_profile
from mockube.clusters.spec import ClusterSpec, ReadyCondition
from mockube.clusters.supervisor import Supervisor
from mockube.component_base.clock import RealClock
from mockube.component_base.flags import (
    comma_separated,
    flags_of,
    seconds,
)
from mockube.component_base.packs import own_pack_names
from mockube.component_base.version import print_version
from mockube.container_runtime.simulation_values import PROCESS
from mockube.failure import UsageError
from mockube.kubectl import KUBECTL, how_to_install
from mockube.kubelet.node_pools import deprecated
from mockube.kubelet.node_pools.pool import PoolError
from mockube.launch import KUBEADM, MINIMAL, LaunchOptions

from . import publishing
from .detach import detach
from .detached_cluster import run_detached, start_fork
from .output import program_name
from .parsing import ALL, CommandParser
from .process_flags import (
    BOTH,
    MANAGER,
    MANAGER_PAGE,
    SERVER,
    SERVER_PAGE,
    add_process_flags,
    dest_of,
    split_flags,
    values_of_flag,
)
from .progress import Progress, is_live
from .run import check_images
from .shared_flags import (
    CLUSTER,
    PODS,
    START_TIMES,
    add_cluster_flags,
    add_name,
    add_profile,
    add_short_name,
    check_control_planes,
    check_networks,
    version_flags,
)
from .target import name_flag_here

READY: Final = """mockube {version}: a Kubernetes cluster is ready, with {nodes}{elsewhere}:

  {kubectl} get nodes
  {kubectl} create deployment web --image=nginx --replicas=3
  {kubectl} get pods -o wide

For kubectl alone, helm and other clients:

  export KUBECONFIG={kubeconfig}

{notes}
{end}"""

_STORE_NOTES: Final = {
    True: "Objects are stored in {store}.",
    False: "Objects are lost when the cluster stops; `mockube up --keep` keeps them.",
}


PAGES_HELP: Final = f"all flags: {SERVER_PAGE}, {MANAGER_PAGE} or {ALL}"
START: Final = "Start"
STORE: Final = "Store"
GROUPS: Final = (CLUSTER, START, STORE, PODS)
"""The groups of the main page: of flags of this command, and of those of both processes that have a topic."""

WAIT_SECONDS: Final = 60.0


class Wait(Struct, frozen=True, kw_only=True):
    """The value of `--wait`: what to wait for, and how long."""

    until: ReadyCondition = ReadyCondition.NODES
    seconds: float = math.inf
    """The timeout."""


def add_flags(parser: CommandParser) -> None:
    parser.usage = f"{parser.prog} [FLAG ...]"
    for title in GROUPS:
        parser.group(title)
    epilogs = {MANAGER_PAGE: lambda: _controller_names(own_pack_names())}
    parser.add_pages(PAGES_HELP, SERVER_PAGE, MANAGER_PAGE, epilogs=epilogs)
    parser.spellings = {"--port": "--secure-port"}
    add_name(parser.group(CLUSTER))
    add_short_name(parser)
    add_cluster_flags(parser.group(CLUSTER))
    add_profile(parser.group(CLUSTER), KUBEADM)
    _add_start_flags(parser)
    persistence = parser.group(STORE).add_mutually_exclusive_group()
    persistence.add_argument(
        "--keep",
        action="store_true",
        help="keep the objects in the cluster's folder",
    )
    persistence.add_argument("--data-dir", type=Path, metavar="DIR", help="keep the objects in this folder")
    if not parser.knows_arguments(os.environ, except_flags=["--packs"]):
        add_process_flags(parser)


def _controller_names(packs: Iterable[str]) -> str:
    from mockube.controller_manager import catalog  # noqa: PLC0415 - it imports all controllers

    return catalog.names_help(packs)


def check_controllers(options: argparse.Namespace) -> None:
    """Refuse unknown names of controllers before the processes start."""
    texts = values_of_flag(options, MANAGER, "controllers")
    if not texts:
        return
    from mockube.controller_manager import catalog, command_line  # noqa: PLC0415 - it imports all controllers

    selection = [name for text in texts for name in comma_separated(text)]
    names = {*catalog.NAMES, *catalog.controllers_of_packs(comma_separated(options.packs), {}).names}
    help_flag = f"`mockube up --help={MANAGER_PAGE}`"
    if problem := command_line.names_problem(selection, names, options.kubernetes_version, help_flag):
        raise UsageError(problem)


def _check_images(options: argparse.Namespace) -> None:
    has_processes = PROCESS in values_of_flag(options, MANAGER, "container_runtime")[-1:]
    texts = values_of_flag(options, MANAGER, "images")
    check_images(Path(texts[-1]) if texts else None, has_processes=has_processes)


def _add_start_flags(parser: CommandParser) -> None:
    start = parser.group(START)
    start.add_argument(
        "-d",
        "--detach",
        action="store_true",
        help="run in the background, and return when ready",
    )
    start.add_argument(
        "--wait",
        type=read_wait,
        nargs="?",
        default=Wait(),
        const=Wait(seconds=WAIT_SECONDS),
        metavar="WHAT/TIME",
        help=f"wait for: nodes, 30s, server/10s (bare: {WAIT_SECONDS:g}s)",
    )
    start.add_argument(
        "--exist-ok",
        action="store_true",
        help="use the cluster if it runs with these flags",
    )
    start.add_argument(
        "--one-process",
        action="store_true",
        help="both programs in one process: fast forks",
    )
    start.add_argument(
        "--write-kubeconfig", type=Path, metavar="FILE", help="write the kubeconfig to this file, too"
    )


def read_wait(text: str) -> Wait:
    """Parse `nodes`, `30s` or `server/30s`."""
    target, slash, time = text.rpartition("/")
    if not slash and time in {*ReadyCondition}:
        return Wait(until=ReadyCondition(time))
    if not slash and not time[:1].isdigit():
        raise ArgumentTypeError(f'"{text}" is none of {", ".join(ReadyCondition)}, and no time such as 30s')
    if slash and target not in {*ReadyCondition}:
        raise ArgumentTypeError(f'"{target}" is not one of {", ".join(ReadyCondition)}')
    return Wait(until=ReadyCondition(target or ReadyCondition.NODES), seconds=seconds(time))


def run(options: argparse.Namespace) -> int:
    for text in values_of_flag(options, SERVER, "version"):
        print_version(text, options.kubernetes_version)
    _replace_deprecated(options)
    check_controllers(options)
    _check_images(options)
    folder = named_cluster.cluster_folder(options.name, os.environ)
    cluster = named_cluster.inspect_cluster(folder)
    if cluster.state in {ClusterState.RUNNING, ClusterState.STARTING}:
        from .existing import use_existing  # noqa: PLC0415 - a start does not need it

        seconds = WAIT_SECONDS if options.wait.seconds == math.inf else options.wait.seconds
        print(ready_message(folder, use_existing(folder, cluster.record, options, seconds)))
        return 0
    spec = _cluster_spec(options, folder)
    _print_change_of_release(options, folder)
    for line in _exposure_warnings_of_flags(options):
        print(f"warning: {line}", file=sys.stderr)
    if not options.detach:
        return _run_attached(folder, spec)
    folder.prepare()
    code = detach(lambda reports: run_detached(folder, spec, reports), folder.log(SUPERVISOR_LOG))
    running = named_cluster.read_record(folder.record)
    if code is None and running is not None:
        print(ready_message(folder, running))
    return code or 0


def _replace_deprecated(options: argparse.Namespace) -> None:
    """Replace deprecated flags of nodes by the pool that they describe, and report these flags."""
    values = {}
    for name, flag in flags_of(deprecated.CommonSettings).items():
        if texts := values_of_flag(options, MANAGER, name):
            values[name] = flag.read(texts[-1])
            vars(options)[dest_of(MANAGER, name)] = []
    settings = deprecated.CommonSettings(**values)
    flags = deprecated.set_flags(settings)
    if not flags:
        return
    try:
        options.simulate_nodes = deprecated.pool_of_settings(options.simulate_nodes, settings)
    except PoolError as error:
        raise UsageError(str(error)) from error
    options.set_flags |= {"simulate_nodes"}
    deprecated.report(flags, f"--nodes={options.simulate_nodes.text}")


def _run_attached(folder: ClusterFolder, spec: ClusterSpec) -> int:
    clock = RealClock()
    progress = Progress(sys.stderr, live=is_live(), clock=clock)

    def ready(running: ClusterRecord) -> None:
        progress.done()
        if running.resets:
            progress.report("the cluster is ready again, and empty")
        else:
            print(ready_message(folder, running), flush=True)

    supervisor = Supervisor(
        folder, spec, clock=clock, report=progress.report, step=progress.step, start_fork=start_fork
    )
    try:
        return asyncio.run(supervisor.run(on_ready=ready))
    finally:
        progress.done()


def _cluster_spec(options: argparse.Namespace, folder: ClusterFolder) -> ClusterSpec:
    server, manager = split_flags(options)
    port = values_of_flag(options, SERVER, "secure-port") or [str(default_port(folder, os.environ))]
    address = values_of_flag(options, SERVER, "bind-address") or [LOOPBACK]
    check_address(address[-1])
    check_port_free(address[-1], int(port[-1]), os.environ)
    copy_to = options.write_kubeconfig and options.write_kubeconfig.absolute()
    if copy_to is not None:
        check_no_other_clusters(folder, copy_to)
    etcd, levels = values_of_flag(options, SERVER, "etcd-servers"), values_of_flag(options, BOTH, "v")
    if etcd and (options.keep or options.data_dir):
        raise UsageError(
            "--etcd-servers, and --keep or --data-dir, cannot be set together: objects are stored in etcd or here"
        )
    data_dir = None if etcd else _data_dir(options, folder)
    profile = _profile(options, data_dir)
    check_networks(LaunchOptions(flags=server, profile=profile.name))
    is_kept = bool(etcd or data_dir)
    return ClusterSpec(
        version=version("mockube"),
        nodes=options.simulate_nodes,
        packs=options.packs,
        flags=(
            *server,
            *version_flags(options),
            f"--secure-port={port[-1]}",
            *((f"--data-dir={data_dir}",) if data_dir else ()),
        ),
        manager_flags=(
            *manager,
            *publishing.flags(vars(options), folder, address[-1], options.simulate_nodes.count),
            *version_flags(options),
        ),
        store=",".join(etcd) or str(data_dir or named_cluster.MEMORY),
        data_dir=data_dir,
        profile=profile,
        one_process=options.one_process,
        detached=options.detach,
        replaces_nodes=is_kept and "simulate_nodes" in options.set_flags,
        copy_to=copy_to,
        until=options.wait.until,
        seconds=options.wait.seconds,
        notes_times=int(levels[-1]) >= START_TIMES if levels else False,
    )


def _profile(options: argparse.Namespace, data_dir: Path | None) -> Profile:
    """Return the profile of the flags, or else that of the store; a cluster without nodes is minimal by default."""
    stored = None if data_dir is None else stored_profile(data_dir)
    is_set = "profile" in options.set_flags
    if stored is not None and stored.name == KUBEADM and is_set and options.profile == MINIMAL:
        raise UsageError(
            f"the store has a cluster with --profile={KUBEADM}: leave --profile out, or use another --name or --data-dir"
        )
    if is_set or stored is None:
        is_bare = not is_set and not options.simulate_nodes.count
        profile = Profile(MINIMAL if is_bare else options.profile, options.control_planes)
    else:
        count = options.control_planes if "control_planes" in options.set_flags else stored.control_planes
        profile = Profile(stored.name, count)
    check_control_planes(options, profile.name)
    return profile


def _print_change_of_release(options: argparse.Namespace, folder: ClusterFolder) -> None:
    """Print what it means that the store was last used by another minor release, if it was."""
    data_dir = _data_dir(options, folder)
    last = "" if data_dir is None else last_minor(data_dir)
    change = change_of_release(last, options.kubernetes_version)
    if change is not None:
        hint = "" if "kubernetes_version" in options.set_flags else f" (--kubernetes-version={last} keeps it)"
        prefix = "mockube" if change.is_supported else "warning"
        print(f"{prefix}: {change.text}{hint}", file=sys.stderr)


def _exposure_warnings_of_flags(options: argparse.Namespace) -> Sequence[str]:
    """Return warnings about flags, or variables that the server reads, that give other users access."""
    environment = os.environ
    values: dict[str, list[str]] = {}
    for name in ("authorization-mode", "allowed-hosts"):
        variable = f"{ENVIRONMENT}_{name.upper().replace('-', '_')}"
        texts = values_of_flag(options, SERVER, name) or [environment.get(variable, "")]
        values[name] = [word for text in texts for word in comma_separated(text)]
    return exposure_warnings(values["authorization-mode"], values["allowed-hosts"])


def _data_dir(options: argparse.Namespace, folder: ClusterFolder) -> Path | None:
    """Return the folder of the store. A store of an earlier `--keep` is used without the flag, too."""
    if options.data_dir is not None:
        return Path(options.data_dir).absolute()
    return folder.data if options.keep or folder.data.exists() else None


def ready_message(folder: ClusterFolder, record: ClusterRecord) -> str:
    flag = name_flag_here(folder)
    notes = [
        _STORE_NOTES[record.store != named_cluster.MEMORY].format(store=record.store),
        publishing.note(record.flags, f"{program_name()} url{flag}"),
    ]
    if shutil.which(KUBECTL) is None:
        notes.insert(0, f"kubectl is not installed: {how_to_install()}.")
    return READY.format(
        version=record.version,
        nodes=_nodes_text(record),
        kubectl=f"{program_name()} kubectl{flag}",
        elsewhere="" if record.detached else ". In another shell",
        kubeconfig=shlex.quote(str(folder.kubeconfig)),
        notes="\n".join(notes),
        end=f"`{program_name()} down{named_cluster.name_flag(folder.name)}` stops it."
        if record.detached
        else "Ctrl+C stops it.",
    )


def _nodes_text(record: ClusterRecord) -> str:
    nodes = "1 simulated node" if record.nodes == 1 else f"{record.nodes} simulated nodes"
    if record.control_planes > 1:
        return f"{nodes} and {record.control_planes} of a control plane"
    return f"{nodes} and a control plane" if record.control_planes else nodes
