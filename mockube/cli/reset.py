"""`mockube reset`: delete all objects of a cluster. A running cluster keeps running, with its address and credentials."""

import argparse
import asyncio
import os
from typing import Final

from mockube.clusters import named_cluster
from mockube.clusters.named_cluster import ClusterFolder, ClusterState, Holder
from mockube.clusters.supervisor import RESET, check_resettable, delete_objects
from mockube.component_base.clock import RealClock
from mockube.failure import Failure, TimedOut

from .parsing import CommandParser
from .progress import print_line
from .shared_flags import add_chosen_name, add_short_name
from .target import chosen_name

SECONDS: Final = 120.0


def add_flags(parser: CommandParser) -> None:
    add_chosen_name(parser)
    add_short_name(parser)


def run(options: argparse.Namespace) -> int:
    cluster = named_cluster.find_cluster(chosen_name(options), os.environ)
    if cluster.state in {ClusterState.STOPPED, ClusterState.DEAD}:
        delete_objects(cluster.folder)
        print_line(f'"{cluster.folder.name}" is empty and stopped')
        return 0
    folder, record, process = cluster.folder, named_cluster.ready_record(cluster), cluster.holder
    assert process is not None, "it runs"
    check_resettable(record, folder)
    named_cluster.send_signals(process, (RESET,))
    clock = RealClock()
    if not asyncio.run(
        named_cluster.wait_until(lambda: _is_done(folder, process, record.resets), clock, seconds=SECONDS)
    ):
        raise TimedOut(f'"{folder.name}" was not ready again within {SECONDS:g} s: see `mockube logs`')
    print_line(f'"{folder.name}" is empty and ready')
    return 0


def _is_done(folder: ClusterFolder, process: Holder, resets_before: int) -> bool:
    cluster = named_cluster.inspect_cluster(folder)
    if cluster.holder != process:
        raise Failure(f'"{folder.name}" stopped during the reset: see `mockube logs`')
    return (
        cluster.state is ClusterState.RUNNING
        and cluster.record is not None
        and cluster.record.resets > resets_before
    )
