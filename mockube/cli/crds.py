"""`mockube crds PACK`: print the CustomResourceDefinitions of a pack, as a cluster with the pack has them."""

import argparse

import yaml

from mockube.apiserver.packs.definitions import definition_trees
from mockube.cli.parsing import CommandParser
from mockube.component_base.packs import load_pack, pack_names


def add_flags(parser: CommandParser) -> None:
    parser.add_argument("pack", choices=[*pack_names()], help="the pack")
    parser.add_argument(
        "--without-conversion",
        action="store_true",
        help="print one version of each kind, for an API server without the conversion webhook of the pack's project",
    )


def run(options: argparse.Namespace) -> int:
    if options.without_conversion:
        print("---\n".join(map(_text, load_pack(options.pack).definitions())), end="")
    else:
        trees = definition_trees(options.pack)
        print(yaml.dump_all(trees, Dumper=_Dumper, sort_keys=False, width=120), end="")
    return 0


def _text(document: str | bytes) -> str:
    return document if isinstance(document, str) else document.decode()


class _Dumper(yaml.SafeDumper):
    """Repeats equal parts: aliases would be hard to read."""

    def ignore_aliases(self, _data: object) -> bool:
        return True
