"""`mockube snapshot save|restore FILE`: save all objects of a store to a file, or restore them from it.

The store is that of a running server, of a stopped server's data folder, or an etcd.
"""

import argparse
import asyncio
import os
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mockube.apiserver.config.settings import StorageOptions
from mockube.client.kubeconfig import Access, read
from mockube.clusters.named_cluster import running_cluster
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.component_base.counted import counted
from mockube.component_base.flags import flags_of
from mockube.failure import TimedOut, UsageError
from mockube.launch import selected_controllers

from .parsing import CommandParser
from .shared_flags import add_short_name
from .target import add_server_flags, convert_errors, find_target

if TYPE_CHECKING:
    from mockube.snapshots.transfer import SnapshotLocation

CONTROLLERS_SECONDS: Final = 60.0
"""How long a restore waits for the controllers of the cluster."""
STORE_FLAGS: Final[Mapping[str, str]] = {
    "data_dir": "the data folder of a stopped server",
    "etcd_servers": "endpoints of etcd, such as http://127.0.0.1:2379",
    "etcd_prefix": "prefix of all keys (/registry)",
    "etcd_cafile": "CA of etcd's certificate",
    "etcd_certfile": "client certificate for etcd",
    "etcd_keyfile": "the key of --etcd-certfile",
}
"""Help texts of the API server's flags that this command has too, with the same defaults."""


def add_flags(parser: CommandParser) -> None:
    commands = parser.add_subparsers(dest="action", metavar="save|restore", required=True)
    save_parser = commands.add_parser("save", help="save all objects of a store to a file")
    restore_parser = commands.add_parser("restore", help="replace all objects of a store by those of a file")
    for command in (save_parser, restore_parser):
        command.add_argument(
            "file",
            type=Path,
            metavar="FILE",
            help="the snapshot: compressed lines of JSON, readable with zcat",
        )
        add_server_flags(command)
        add_short_name(command)
        _add_store(command)
    save_parser.add_argument(
        "--snapshot", metavar="SNAPSHOT", help="save the content of this object of the kind Snapshot"
    )
    restore_parser.add_argument(
        "--replace", action="store_true", help="delete the current objects of the store"
    )


def run(options: argparse.Namespace) -> int:
    with convert_errors():
        asyncio.run(_ACTIONS[options.action](options))
    return 0


async def _save(options: argparse.Namespace) -> None:
    from mockube.snapshots.transfer import ServerLocation, write_snapshot  # noqa: PLC0415 - see _location

    location, _ = _location(options)
    if options.snapshot is None:
        chunks = location.chunks()
    elif isinstance(location, ServerLocation):
        chunks = location.chunks(options.snapshot)
    else:
        raise UsageError("--snapshot needs a running server: a Snapshot is in its memory")
    snapshot = await write_snapshot(options.file, chunks)
    print(
        f"{options.file}: {counted(snapshot.count, 'object', 'objects')} at revision {snapshot.header.revision}"
    )


async def _restore(options: argparse.Namespace) -> None:
    from mockube.apiserver.snapshot_files import opened_snapshot  # noqa: PLC0415 - see _location
    from mockube.snapshots.transfer import ServerLocation  # noqa: PLC0415 - see _location

    location, cluster = _location(options)
    async with opened_snapshot(options.file) as snapshot:
        await location.restore(snapshot, replace=options.replace)
        if isinstance(location, ServerLocation) and cluster:
            await _wait_for_controllers(cluster, location.access)
        print(f"{options.file}: {counted(snapshot.count, 'object', 'objects')} restored")


async def _wait_for_controllers(cluster: str, access: Access) -> None:
    """Wait until the controllers of a named cluster have created what the snapshot lacks and pods need."""
    from mockube.cluster_client import wait_for_pods  # noqa: PLC0415 - see _location

    _, record = running_cluster(cluster, os.environ)
    async with open_client(access, RealClock()) as client:
        try:
            controllers = selected_controllers(record.flags)
            await wait_for_pods(client, 0, controllers=controllers, seconds=CONTROLLERS_SECONDS)
        except TimeoutError as error:
            raise TimedOut(f"the objects were restored, but {error}") from error


_ACTIONS: Final[Mapping[str, Callable[[argparse.Namespace], Coroutine[None, None, None]]]] = {
    "save": _save,
    "restore": _restore,
}


def _location(options: argparse.Namespace) -> "tuple[SnapshotLocation, str]":
    """Return where the snapshot is saved from or restored to, as the flags select it, and the cluster of this machine or ""."""
    from mockube.apiserver.config.command_line import store_problem  # noqa: PLC0415 - as below
    from mockube.snapshots.transfer import (  # noqa: PLC0415 - it imports every kind of store, which help texts do not need
        EtcdLocation,
        FolderLocation,
        ServerLocation,
    )

    flags = {name: getattr(options, name) for name in STORE_FLAGS if getattr(options, name)}
    store, clock = StorageOptions(**flags), RealClock()
    if problem := store_problem(store):
        raise UsageError(problem)
    if flags and not (store.data_dir or store.etcd_servers):
        flag = next(iter(flags)).replace("_", "-")
        raise UsageError(f"--{flag} needs --data-dir or --etcd-servers")
    if store.etcd_servers:
        return EtcdLocation(settings=store, clock=clock), ""
    if store.data_dir is not None:
        return FolderLocation(path=store.data_dir, prefix=store.etcd_prefix, clock=clock), ""
    target = find_target(options)
    return ServerLocation(access=read(target.kubeconfig), clock=clock), target.name


def _add_store(parser: CommandParser) -> None:
    group = parser.add_argument_group("Store, instead of an API server")
    flags = flags_of(StorageOptions)
    for name, meaning in STORE_FLAGS.items():
        flag = flags[name]
        group.add_argument(
            f"--{name.replace('_', '-')}",
            type=flag.read,
            default=() if flag.repeats else None,
            metavar=flag.metavar or name.rpartition("_")[2].upper(),
            help=meaning,
        )
