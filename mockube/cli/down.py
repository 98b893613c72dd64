"""`mockube down`: end a cluster."""

import argparse
import asyncio
import os
import shutil
import signal
from typing import Final

from mockube.apimachinery.clock import RealClock
from mockube.cli.parsing import Parser
from mockube.cli.progress import print_line
from mockube.cli.shared_flags import add_name
from mockube.clusters.named_cluster import FoundCluster, State, find, holder, send_signals, wait_until
from mockube.failure import Failure, TimedOut

SECONDS: Final = 90.0
"""Longer than the server waits for requests that are being answered."""

GRACEFUL_SIGNALS: Final = (signal.SIGTERM,)
FORCED_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
"""At the second signal it kills; two of one kind could be taken for one."""


def add_flags(parser: Parser) -> None:
    add_name(parser)
    parser.add_argument("--now", action="store_true", help="do not wait for running requests")
    parser.add_argument(
        "--delete",
        action="store_true",
        help="delete the cluster's folder too: certificates, logs and objects",
    )


def run(options: argparse.Namespace) -> int:
    cluster = find(options.name, os.environ)
    if cluster.state in {State.RUNNING, State.STARTING}:
        _end_process(cluster, FORCED_SIGNALS if options.now else GRACEFUL_SIGNALS)
        print_line(f'"{options.name}" has stopped')
    else:
        cluster.folder.record.unlink(missing_ok=True)
        print_line(f'"{options.name}" was not running')
    if options.delete:
        if holder(cluster.folder.lock) is not None:
            raise Failure(f'"{options.name}" was started again meanwhile and is not deleted')
        shutil.rmtree(cluster.folder.path)
    return 0


def _end_process(cluster: FoundCluster, signals: tuple[signal.Signals, ...]) -> None:
    """End the process that ran the cluster when it was found, and wait for that; another may run it by then."""
    clock, lock, process = RealClock(), cluster.folder.lock, cluster.holder
    if process is None:
        return
    if not process.pid:  # it has taken the lock this moment
        raise Failure(f'"{cluster.folder.name}" is starting: try again')
    send_signals(process, signals)

    def has_ended() -> bool:
        """Return whether the lock is free, or another process's; a lock that is being released has no process."""
        now = holder(lock)
        return now is None or (bool(now.pid) and now != process)

    if not asyncio.run(wait_until(has_ended, clock, seconds=SECONDS)):
        raise TimedOut(
            f'"{cluster.folder.name}" did not stop within {SECONDS:g} s: use --now to cancel its requests'
        )
