"""`mockube crds PACK`: print the CustomResourceDefinitions of a pack, as a cluster with the pack has them."""

import argparse

import yaml

from mockube.apiserver.packs.definitions import definition_trees
from mockube.component_base.packs import PackError, load_pack, pack_names, parts_of
from mockube.failure import UsageError

from .parsing import CommandParser


def add_flags(parser: CommandParser) -> None:
    parser.add_argument(
        "pack", choices=[*pack_names()], metavar="PACK", help=f"the pack: {', '.join(pack_names())}"
    )
    parser.add_argument(
        "--without-conversion",
        action="store_true",
        help="print one version of each kind, for an API server without the conversion webhook of the pack's project",
    )


def run(options: argparse.Namespace) -> int:
    try:
        print(_definitions(options.pack, with_conversion=not options.without_conversion), end="")
    except PackError as error:
        raise UsageError(str(error)) from error
    return 0


def _definitions(name: str, *, with_conversion: bool) -> str:
    if with_conversion:
        text: str = yaml.dump_all(definition_trees(name), Dumper=_Dumper, sort_keys=False, width=120)
        return text
    return "---\n".join(map(_text, parts_of(name, "definitions", load_pack(name).definitions)))


def _text(document: str | bytes) -> str:
    return document if isinstance(document, str) else document.decode()


class _Dumper(yaml.SafeDumper):
    """Repeats equal parts: aliases would be hard to read."""

    def ignore_aliases(self, _data: object) -> bool:
        return True
