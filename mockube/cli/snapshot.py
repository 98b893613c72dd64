"""`mockube snapshot save|restore FILE`: all that a cluster stores, in one file and back."""

import argparse
import asyncio
from pathlib import Path

from apimachinery.flags import flags_of
from apiserver.config.settings import Store
from mockube.cli.meant import add_server, told
from mockube.cli.parsing import Parser

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
    from mockube.cli.snapshotting import WORK  # noqa: PLC0415 - it brings every kind of store along

    with told():
        asyncio.run(WORK[options.action](options))
    return 0


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
