"""`mockube import FILE...`: import objects that `kubectl get -o yaml` printed into a cluster."""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mockube.client.kubeconfig import Access
from mockube.command_client import open_client
from mockube.component_base.clock import RealClock
from mockube.component_base.printable import printable
from mockube.importing.documents import Document, InvalidDocument, read
from mockube.importing.files import read_file
from mockube.importing.importer import Importer, ImportOptions, ImportOutcome, Item

from .output import Code
from .parsing import CommandParser
from .progress import print_line
from .shared_flags import add_namespace
from .target import add_server_flags, convert_errors, server_access

STDIN: Final = "-"


def add_flags(parser: CommandParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="YAML or JSON files with objects and lists; - reads stdin"
    )
    add_server_flags(parser)
    add_namespace(parser, "import all namespaced objects into this namespace", "")
    parser.add_argument(
        "--replace",
        action="store_true",
        help="replace existing objects; without this flag they are left unchanged",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be imported, without writing"
    )


def run(options: argparse.Namespace) -> int:
    documents = [document for name in options.files for document in _read(name)]
    import_options = ImportOptions(
        replace=options.replace, dry_run=options.dry_run, namespace=options.namespace
    )
    report = _Report(import_options)
    for document in documents:
        if isinstance(document, InvalidDocument):
            report.refuse(f"{document.origin}: {document.problem}")
    with convert_errors():
        asyncio.run(
            _run(
                [document for document in documents if isinstance(document, Document)],
                server_access(options),
                report,
            )
        )
    print(report.summary())
    return Code.ERROR if report.counts[ImportOutcome.FAILED] else Code.OK


async def _run(documents: list[Document], access: Access, report: "_Report") -> None:
    clock = RealClock()
    async with open_client(access, clock) as client:
        await Importer(client, clock, report.import_options, report.add).run(documents)


def _read(name: str) -> Iterator[Document | InvalidDocument]:
    if name == STDIN:
        return read(sys.stdin.buffer.read(), "stdin")
    return read(read_file(Path(name), may_be_pipe=True), name)


class _Report:
    """The report of an import: a line for each object, outcomes on stdout and failures on stderr."""

    def __init__(self, import_options: ImportOptions) -> None:
        self.import_options = import_options
        self.counts: Counter[ImportOutcome] = Counter()
        self._dry = " (dry run)" if import_options.dry_run else ""

    def refuse(self, problem: str) -> None:
        self.counts[ImportOutcome.FAILED] += 1
        print_line(problem)

    def add(self, item: Item) -> None:
        assert item.outcome is not None
        if item.origin is None and item.outcome is not ImportOutcome.FAILED:
            return  # an implied object
        if item.outcome is ImportOutcome.FAILED:
            prefix = f"{item.origin}: " if item.origin else ""
            self.refuse(f"{prefix}{item.title}: {item.reason}")
            return
        self.counts[item.outcome] += 1
        reason = f" ({item.reason})" if item.reason else ""
        print(printable(f"{item.title} {item.outcome}{reason}{self._dry}"))

    def summary(self) -> str:
        counts = [f"{self.counts[outcome]} {outcome}" for outcome in ImportOutcome if self.counts[outcome]]
        return f"{', '.join(counts) or 'nothing to import'}{self._dry}"
