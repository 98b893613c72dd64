"""`mockube down`: stop a cluster."""

import argparse
import asyncio
import os
import shutil
import signal
from typing import Final

from mockube.clusters import named_cluster
from mockube.clusters.named_cluster import ClusterState, FoundCluster
from mockube.component_base.clock import RealClock
from mockube.failure import Failure, TimedOut

from .parsing import CommandParser
from .progress import print_line
from .shared_flags import add_chosen_name, add_short_name
from .target import chosen_name

SECONDS: Final = 90.0
"""The timeout for the stop; longer than the server waits for requests in progress."""

GRACEFUL_SIGNALS: Final = (signal.SIGTERM,)
FORCED_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
"""The second signal kills the processes. It differs from the first, because two pending signals of one number count as one."""


def add_flags(parser: CommandParser) -> None:
    add_chosen_name(parser)
    add_short_name(parser)
    parser.add_argument("--now", action="store_true", help="do not wait for running requests")
    parser.add_argument(
        "--delete",
        action="store_true",
        help="delete the cluster's folder too: certificates, logs and objects",
    )


def run(options: argparse.Namespace) -> int:
    cluster = named_cluster.find_cluster(chosen_name(options), os.environ)
    name = cluster.folder.name
    if cluster.state in {ClusterState.RUNNING, ClusterState.STARTING}:
        _end_process(cluster, FORCED_SIGNALS if options.now else GRACEFUL_SIGNALS)
        print_line(f'"{name}" has stopped')
    else:
        cluster.folder.record.unlink(missing_ok=True)
        print_line(f'"{name}" was not running')
    if options.delete:
        if named_cluster.lock_holder(cluster.folder.lock) is not None:
            raise Failure(f'"{name}" was started again meanwhile and is not deleted')
        shutil.rmtree(cluster.folder.path)
    return 0


def _end_process(cluster: FoundCluster, signals: tuple[signal.Signals, ...]) -> None:
    """Stop the process that ran the cluster when it was found, and wait until it has released the lock."""
    clock, lock, process = RealClock(), cluster.folder.lock, cluster.holder
    if process is None:
        return
    if not process.pid:  # the process has just taken the lock
        raise Failure(f'"{cluster.folder.name}" is starting: try again')
    named_cluster.send_signals(process, signals)

    def is_released() -> bool:
        """Return whether the lock is free or another process holds it; while it is being released, it has no process id."""
        holder = named_cluster.lock_holder(lock)
        return holder is None or (bool(holder.pid) and holder != process)

    if not asyncio.run(named_cluster.wait_until(is_released, clock, seconds=SECONDS)):
        raise TimedOut(
            f'"{cluster.folder.name}" did not stop within {SECONDS:g} s: use --now to cancel its requests'
        )
