"""`mockube snapshot save|restore FILE`: all that a cluster stores, in one file and back."""

import argparse
import asyncio
from pathlib import Path

from apimachinery.clock import RealClock
from apimachinery.flags import flags_of
from apiserver.config.command_line import store_problem
from apiserver.config.settings import Store
from apiserver.storage.snapshots import opened_snapshot
from mockube.cli.meant import add_server, server_of, told
from mockube.cli.parsing import Parser
from mockube.failure import Misused
from mockube.snapshots.files import write
from mockube.snapshots.places import Etcd, Folder, Running, SnapshotPlace

STORE_FLAGS = ("data_dir", "etcd_servers", "etcd_prefix", "etcd_cafile", "etcd_certfile", "etcd_keyfile")
"""The API server's own, for stores that are reached without one."""


def add_flags(parser: Parser) -> None:
    commands = parser.add_subparsers(dest="action", metavar="save|restore", required=True)
    saving = commands.add_parser("save", help="write all that is stored into a file")
    restoring = commands.add_parser("restore", help="store what is in a file, and nothing else")
    for command in (saving, restoring):
        command.add_argument("file", type=Path, metavar="FILE")
        add_server(command)
        _add_store(command)
    restoring.add_argument("--replace", action="store_true", help="lose what is stored there now")


def run(options: argparse.Namespace) -> int:
    with told():
        asyncio.run((_save if options.action == "save" else _restore)(options))
    return 0


async def _save(options: argparse.Namespace) -> None:
    saved = await write(options.file, _place(options).pieces())
    print(f"{options.file}: {saved.count} objects at revision {saved.opening.revision}")


async def _restore(options: argparse.Namespace) -> None:
    place = _place(options)
    async with opened_snapshot(options.file) as found:
        await place.put(found, replace=options.replace)
        print(f"{options.file}: {found.count} objects restored")


def _add_store(parser: Parser) -> None:
    group = parser.add_argument_group("Store, where no API server is asked")
    flags = flags_of(Store)
    for name in STORE_FLAGS:
        flag = flags[name]
        group.add_argument(
            f"--{name.replace('_', '-')}",
            type=flag.read,
            default=() if flag.repeats else None,
            metavar=flag.metavar or name.rpartition("_")[2].upper(),
            help=flag.help,
        )


def _place(options: argparse.Namespace) -> SnapshotPlace:
    given = {name: getattr(options, name) for name in STORE_FLAGS if getattr(options, name)}
    store, clock = Store(**given), RealClock()
    if problem := store_problem(store):
        raise Misused(problem)
    if given and not (store.data_dir or store.etcd_servers):
        flag = next(iter(given)).replace("_", "-")
        raise Misused(f"--{flag} says nothing by itself: --data-dir or --etcd-servers must be there as well")
    if store.etcd_servers:
        return Etcd(settings=store, clock=clock)
    if store.data_dir is not None:
        return Folder(path=store.data_dir, prefix=store.etcd_prefix, clock=clock)
    return Running(access=server_of(options), clock=clock)
