"""`mockube crds PACK`: print the CustomResourceDefinitions of a pack, as a cluster with the pack has them."""

import argparse

from mockube.apiserver.packs.definitions import definition_trees
from mockube.component_base.packs import PackError, load_pack, pack_names, parts_of
from mockube.failure import UsageError

from .parsing import CommandParser
from .yaml_text import dump_documents


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
        return dump_documents(definition_trees(name))
    return "---\n".join(map(_text, parts_of(name, "definitions", load_pack(name).definitions)))


def _text(document: str | bytes) -> str:
    return document if isinstance(document, str) else document.decode()
