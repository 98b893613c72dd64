"""`mockube snapshot save|restore FILE`: all that a cluster stores, in one file and back."""

import argparse
import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from mockube.apimachinery.flags import flags_of
from mockube.apiserver.config.settings import Store
from mockube.cli.parsing import Parser
from mockube.cli.target import add_server, reporting_failures

STORE_FLAGS: Final[Mapping[str, str]] = {
    "data_dir": "the data folder of a stopped server",
    "etcd_servers": "endpoints of etcd, such as http://127.0.0.1:2379",
    "etcd_prefix": "prefix of all keys (/registry)",
    "etcd_cafile": "CA of etcd's certificate",
    "etcd_certfile": "client certificate for etcd",
    "etcd_keyfile": "the key of --etcd-certfile",
}
"""The API server's defaults, for commands without an API server."""


def add_flags(parser: Parser) -> None:
    commands = parser.add_subparsers(dest="action", metavar="save|restore", required=True)
    saving = commands.add_parser("save", help="save all objects of a store to a file")
    restoring = commands.add_parser("restore", help="replace all objects of a store by those of a file")
    for command in (saving, restoring):
        command.add_argument(
            "file",
            type=Path,
            metavar="FILE",
            help="the snapshot: compressed lines of JSON, readable with zcat",
        )
        add_server(command)
        _add_store(command)
    restoring.add_argument("--replace", action="store_true", help="delete the current objects of the store")


def run(options: argparse.Namespace) -> int:
    from mockube.cli.snapshotting import WORK  # noqa: PLC0415 - it brings every kind of store along

    with reporting_failures():
        asyncio.run(WORK[options.action](options))
    return 0


def _add_store(parser: Parser) -> None:
    group = parser.add_argument_group("Store, instead of an API server")
    flags = flags_of(Store)
    for name, meaning in STORE_FLAGS.items():
        flag = flags[name]
        group.add_argument(
            f"--{name.replace('_', '-')}",
            type=flag.read,
            default=() if flag.repeats else None,
            metavar=flag.metavar or name.rpartition("_")[2].upper(),
            help=meaning,
        )
