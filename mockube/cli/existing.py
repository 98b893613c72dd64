"""`mockube up` where the cluster runs already: it is refused, or used as it is with `--exist-ok`.

The flags that are set must be those with which the cluster runs: a script that requests another minor would otherwise test the
wrong one. Flags that are not set may be anything.
"""

import argparse
import asyncio
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from mockube.apimachinery.schema import minors
from mockube.apiserver.config import settings
from mockube.clusters import kubeconfigs, named_cluster
from mockube.clusters.health import count_nodes, read_config_map
from mockube.clusters.named_cluster import ClusterFolder, ClusterLocked, ClusterRecord, ClusterState
from mockube.component_base.clock import RealClock
from mockube.component_base.flags import comma_separated, flags_of
from mockube.controller_manager.config import settings as manager
from mockube.failure import Failure
from mockube.kubelet.node_pools.flag import read_nodes
from mockube.kubelet.node_pools.pool import NodePools
from mockube.kubelet.resizing import NODES_CONFIG_MAP, desired_nodes

_MINOR: Final = "--kubernetes-version"
_PORT: Final = "secure-port"
_ANY_PORT: Final = "0"


def use_existing(
    folder: ClusterFolder, running: ClusterRecord | None, options: argparse.Namespace, seconds: float
) -> ClusterRecord:
    """Return the record of the cluster that runs, with its number of nodes; raise Failure if it is not to be used.

    `seconds` is how long to wait for a cluster that another command starts.
    """
    if options.exist_ok and (running is None or not running.ready):
        running = _wait_ready(folder, seconds)
    if running is None or not running.ready:
        raise ClusterLocked(f'"{folder.name}" is already starting')
    if not options.exist_ok:
        raise ClusterLocked(
            f'"{folder.name}" is already running, as process {running.pid} at {running.url}: stop it with '
            f"`mockube down{named_cluster.name_flag(folder.name)}`, use it as it is with --exist-ok, or start another one with --name"
        )
    nodes = count_nodes(folder.kubeconfig)
    if nodes is None:
        raise Failure(f'"{folder.name}" runs as process {running.pid}, but {running.url} does not respond')
    running = msgspec.structs.replace(running, nodes=max(nodes - running.control_planes, 0))
    if found := [*differences(options, folder, running)]:
        raise ClusterLocked(
            f'"{folder.name}" runs with other flags: {", ".join(found)}. Leave these flags out to use it as it is, '
            f"stop it with `mockube down{named_cluster.name_flag(folder.name)}`, or start another one with --name"
        )
    if options.write_kubeconfig is not None:
        path = options.write_kubeconfig.absolute()
        kubeconfigs.check_no_other_clusters(folder, path)
        kubeconfigs.copy(folder, path)
    return running


def _wait_ready(folder: ClusterFolder, seconds: float) -> ClusterRecord | None:
    asyncio.run(
        named_cluster.wait_until(
            lambda: named_cluster.inspect_cluster(folder).state is not ClusterState.STARTING,
            RealClock(),
            seconds=seconds,
        )
    )
    return named_cluster.read_record(folder.record)


def differences(options: argparse.Namespace, folder: ClusterFolder, running: ClusterRecord) -> Iterator[str]:
    """Yield the flags that are set, and whose values are not those of the cluster that runs."""
    if "kubernetes_version" in options.set_flags:
        minor = next(iter(_texts_of(running, _MINOR)), minors.NEWEST)
        yield from _compare(_MINOR, minor, options.kubernetes_version)
    if "simulate_nodes" in options.set_flags:
        yield from _node_differences(options.simulate_nodes, folder, running)
    if "packs" in options.set_flags:
        yield from _compare("--packs", _sorted_names(running.packs), _sorted_names(options.packs))
    if "profile" in options.set_flags:
        yield from _compare("--profile", running.profile, options.profile)
    if "control_planes" in options.set_flags:
        yield from _compare("--control-planes", str(running.control_planes), str(options.control_planes))
    if options.one_process and not running.one_process:
        yield "--one-process is not set"
    yield from _store_differences(options, folder, running)
    for dest, texts in vars(options).items():
        _, dot, name = dest.partition(".")
        if dot and texts:
            yield from _process_flag_differences(running, name, texts)


def _node_differences(requested: NodePools, folder: ClusterFolder, running: ClusterRecord) -> Iterator[str]:
    config_map = read_config_map(folder.kubeconfig, *NODES_CONFIG_MAP)
    pools = desired_nodes(config_map, read_nodes(running.pools or str(running.nodes))).pools
    if pools.pools != requested.pools:
        words = shlex.join(("mockube", "nodes", requested.text))
        hint = f" (`{words}{named_cluster.name_flag(folder.name)}` changes it)"
        yield from _compare("--nodes", pools.summary, requested.summary, hint)


def _compare(flag: str, running: str, requested: str, hint: str = "") -> Iterator[str]:
    if running != requested:
        yield f"{flag} is {running or 'empty'} and not {requested or 'empty'}{hint}"


def _sorted_names(text: str) -> str:
    return ",".join(sorted(comma_separated(text)))


def _store_differences(
    options: argparse.Namespace, folder: ClusterFolder, running: ClusterRecord
) -> Iterator[str]:
    if options.data_dir is not None:
        yield from _compare("--data-dir", running.store, str(Path(options.data_dir).absolute()))
    elif options.keep and running.store != str(folder.data):
        yield f"--keep is not set: the store is {running.store}"


def _process_flag_differences(running: ClusterRecord, name: str, texts: Sequence[str]) -> Iterator[str]:
    """Compare a flag of the two processes: the values as they are written, or with the default of the flag."""
    flag, own_texts = f"--{name}", _texts_of(running, f"--{name}")
    if name == _PORT and texts[-1] == _ANY_PORT:
        return
    if own_texts:
        yield from _compare(flag, ",".join(own_texts), ",".join(dict.fromkeys(texts)))
    elif not _is_default(name, texts):
        yield f"{flag} is not set"


def _texts_of(running: ClusterRecord, flag: str) -> Sequence[str]:
    """Return the values of a flag with which the cluster runs; one that both processes have is recorded twice."""
    pairs = (text.partition("=") for text in running.flags)
    return [*dict.fromkeys(value for name, _, value in pairs if name == flag)]


def _is_default(name: str, texts: Sequence[str]) -> bool:
    field = name.replace("-", "_")
    for record in (*settings.SECTIONS.values(), *manager.SECTIONS.values()):
        if (flag := flags_of(record).get(field)) is not None:
            default: Any = {each.name: each.default for each in msgspec.structs.fields(record)}[field]
            return len(texts) == 1 and flag.read(texts[0]) == default
    return False
