"""Which tests reach a line, and how long they take: each module of tests is run once with coverage, in a forked process.

The result of a module is kept in the cache of the virtual environment until it or the source changes.
"""

import hashlib
import os
import sys
import time
import traceback
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import coverage
import msgspec
import pytest
from _pytest.runner import runtestprotocol
from coverage.exceptions import CoverageWarning
from msgspec import Struct

CACHE = Path(sys.prefix) / "cache" / "mutations"


class Reached(Struct):
    """What the tests of a module reach."""

    seconds: dict[str, float] = {}
    """The processor time of each test that passes."""
    failed: list[str] = []
    lines: dict[str, dict[str, bytes]] = {}
    """The bits of the lines of each file, by test."""


class ReachedLines:
    """What the tests of a package reach of its files."""

    def __init__(self, root: Path, folder: str, items: Iterable[pytest.Item]) -> None:
        self._items = {item.nodeid: item for item in items}
        modules = defaultdict[Path, list[pytest.Item]](list)
        for item in self._items.values():
            modules[item.path].append(item)
        source = hashlib.sha256()
        for path in sorted((root / folder).rglob("*.py")):
            source.update(path.read_bytes())
        self._root = root
        self._results = [_reached(root, folder, source.digest(), tests) for tests in modules.values()]
        self.failed = [nodeid for result in self._results for nodeid in result.failed]
        self.seconds = {key: value for result in self._results for key, value in result.seconds.items()}

    def tests_of(self, lines: Mapping[str, Iterable[int] | None]) -> list[pytest.Item]:
        """Return the tests that reach one of the lines of files, or any line of a file without such: first the quickest of each module."""
        wanted = {file: -1 if numbers is None else _bits(numbers) for file, numbers in lines.items()}
        ranked = []
        for result in self._results:
            found = {
                nodeid
                for file, bits in wanted.items()
                for nodeid, reached in result.lines.get(file, {}).items()
                if int.from_bytes(reached) & bits and nodeid in result.seconds
            }
            by_time = sorted(found, key=lambda nodeid: result.seconds[nodeid])
            ranked += [(rank, result.seconds[nodeid], nodeid) for rank, nodeid in enumerate(by_time)]
        return [self._items[nodeid] for _, _, nodeid in sorted(ranked)]


def _reached(root: Path, folder: str, source: bytes, items: Sequence[pytest.Item]) -> Reached:
    file = CACHE / folder / digest_of(source, items)
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        child = os.fork()
        if child == 0:
            # It never returns: nothing of this process, such as pytest's report, may run twice.
            try:
                file.write_bytes(msgspec.msgpack.encode(_run_with_coverage(root, folder, items)))
            except BaseException:  # noqa: BLE001 - it is printed
                traceback.print_exc()
            finally:
                os._exit(0)
        os.waitpid(child, 0)
    return msgspec.msgpack.decode(file.read_bytes(), type=Reached)


def digest_of(source: bytes, items: Sequence[pytest.Item]) -> str:
    """Return the name of the record of a module's tests, whose order is another one in each run."""
    names = sorted(item.nodeid for item in items)
    (path,) = {item.path for item in items}
    return hashlib.sha256(b"".join((source, path.read_bytes(), " ".join(names).encode()))).hexdigest()


def _run_with_coverage(root: Path, folder: str, items: Sequence[pytest.Item]) -> Reached:
    reached = Reached()
    measured = coverage.Coverage(data_file=None, config_file=False, include=[f"{root / folder}/*"])
    measured.start()
    for item in items:
        measured.switch_context(item.nodeid)
        began = time.process_time()
        reports = runtestprotocol(item, log=False, nextitem=None)
        if any(report.failed for report in reports):
            reached.failed.append(item.nodeid)
        else:
            reached.seconds[item.nodeid] = time.process_time() - began
    measured.stop()
    with warnings.catch_warnings(category=CoverageWarning, action="ignore"):  # some reach nothing
        data = measured.get_data()
    for path in data.measured_files():
        numbers = defaultdict[str, list[int]](list)
        for line, tests in data.contexts_by_lineno(path).items():
            for test in tests:
                numbers[test].append(line)
        reached.lines[os.path.relpath(path, root)] = {
            test: _bits(lines).to_bytes((max(lines) + 8) // 8) for test, lines in numbers.items()
        }
    return reached


def _bits(numbers: Iterable[int]) -> int:
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return bits
