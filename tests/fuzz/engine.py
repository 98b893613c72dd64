"""Runs fuzz targets: generates cases, checks their outcomes, and shrinks those that show a fault.

A case is a JSON tree, so that it can be mutated, shrunk and stored in a file for any target; bytes are text in
latin-1. A check returns a short text, the outcome of the case. A case with an outcome that no other had is kept and
mutated further: so targets are explored by their outcomes, without coverage of lines.
"""

import asyncio
import contextlib
import hashlib
import re
import signal
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import orjson

from tests.fuzz.shrink import shrunk
from tests.support.hostile import hostile_bodies
from tests.support.seeded import source
from tools.packages import CODE, ROOT

CORPUS = Path(__file__).parent / "corpus"

CPU_SECONDS, CPU_SECONDS_PER_MEGABYTE = 0.4, 6.0
"""The time limit of a case: a linear walk in Python of some megabytes takes seconds, a quadratic one minutes."""
MAX_CALLBACK_SECONDS = 0.3
"""Limit of CPU time of a server's event loop: /livez may wait this long."""
MAX_SECONDS, MAX_CPU_SECONDS = 90.0, 15.0
"""Seconds after which a case is ended."""
POOL = 3000
"""The number of cases that are kept for mutation, of each target."""


class Fault(AssertionError):
    """A violated invariant; the first line of the text is the same for every case of the same fault."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """`check` returns the outcome of a case, and raises on an unexpected one.

    With `session`, `check` takes the opened session before the case, and may be a coroutine function.
    """

    name: str
    generate: Callable[[Any], Any]
    check: Callable[..., Any]
    session: Callable[[], AbstractAsyncContextManager[Any]] | None = None
    examples: int = 300
    """How many cases a run of all tests takes."""
    weight: int = 1
    """How many times as long it runs as others."""
    mutate: Callable[[Any, Any], Any] | None = None
    """Mutates a case; None for targets whose cases are only generated."""


@dataclass
class Finding:
    signature: str
    case: Any
    detail: str
    count: int = 1


@dataclass
class Figures:
    """The results of one target's run."""

    examples: int = 0
    outcomes: Counter = field(default_factory=Counter)
    findings: dict[str, Finding] = field(default_factory=dict)
    slowest: tuple[float, Any] = (0.0, None)
    longest: float = 0.0
    """Seconds of CPU time of one callback of a server's event loop, which blocks all other requests."""

    def add(self, other: "Figures") -> None:
        self.examples += other.examples
        self.outcomes += other.outcomes
        self.findings = other.findings | self.findings
        self.slowest = max(self.slowest, other.slowest, key=lambda slowest: slowest[0])
        self.longest = max(self.longest, other.longest)


class Runner:
    """One target with one seed. The sequence of cases depends on the seed and the code alone."""

    def __init__(
        self, target: Target, seed: int, *, before: Callable[[str, bytes], None] = lambda _name, _text: None
    ) -> None:
        """`before` is called with the target's name and the text of each case, before it runs."""
        self.target = target
        self._before = before
        self.figures = Figures()
        self._random = source("fuzz", target.name, seed)
        self._pool: list[Any] = []
        self._seen: set[str] = set()
        self._loop: asyncio.Runner | None = None
        self._session: Any = None
        self._opened: Any = None

    def __enter__(self) -> Self:
        self._open()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._close()

    def _open(self) -> None:
        if self.target.session is not None:
            self._loop = asyncio.Runner()
            self._session = self.target.session()
            self._opened = self._loop.run(self._session.__aenter__())

    def _close(self) -> None:
        if self._loop is not None:
            try:
                self._loop.run(self._session.__aexit__(None, None, None))
            except Exception as error:  # noqa: BLE001 - as in _judge
                finding = Finding(signature(error), None, traceback_text(error))
                self.figures.findings.setdefault(finding.signature, finding)
            self._loop.close()

    def run(self, *, examples: int = 0, seconds: float = 0.0, shrink_seconds: float = 8.0) -> None:
        """Run this many examples, or for this long."""
        end = time.monotonic() + seconds if seconds else 0.0
        done = 0
        while done < examples or (end and time.monotonic() < end):
            done += 1
            self._run_case(self._next_case(), shrink_seconds)

    def replay(self, case: Any) -> Finding | None:
        _, finding = self._judge(case)
        return finding

    def _next_case(self) -> Any:
        random = self._random
        if self._pool and self.target.mutate and random.random() < 0.5:
            return self.target.mutate(random.choice(self._pool), random)
        return self.target.generate(random)

    def _run_case(self, case: Any, shrink_seconds: float) -> None:
        figures = self.figures
        figures.examples += 1
        outcome, finding = self._judge(case)
        if finding is None:
            figures.outcomes[outcome[:3] if outcome[:3].isdigit() else outcome.partition(":")[0]] += 1
            key = normalised(outcome)
            if key not in self._seen and len(self._pool) < POOL:
                self._seen.add(key)
                self._pool.append(case)
        elif finding.signature in figures.findings:
            figures.findings[finding.signature].count += 1
        else:
            figures.findings[finding.signature] = self._smallest(finding, shrink_seconds)

    def _smallest(self, finding: Finding, seconds: float) -> Finding:
        if "no end" in finding.signature:  # each try would take as long
            return finding

        def same(case: Any) -> Finding | None:
            _, found = self._judge(case)
            return found if found is not None and found.signature == finding.signature else None

        return shrunk(finding, same, seconds)

    def _judge(self, case: Any) -> tuple[str, Finding | None]:
        text = orjson.dumps(case)
        self._before(self.target.name, text)
        allowed = CPU_SECONDS + CPU_SECONDS_PER_MEGABYTE * len(text) / 1e6
        spent = longest = float("inf")
        outcome = ""
        for _ in range(3):  # the least of three: other load may slow the machine
            case = orjson.loads(text)
            begun = time.thread_time()
            try:
                outcome = self._check(case)
            except Exception as error:  # noqa: BLE001 - every exception is a finding
                return "", Finding(signature(error), orjson.loads(text), traceback_text(error))
            spent = min(spent, time.thread_time() - begun)
            longest = min(longest, getattr(self._opened, "longest_callback", 0.0))
            if spent <= allowed and longest <= MAX_CALLBACK_SECONDS:
                break
        if spent > self.figures.slowest[0]:
            self.figures.slowest = (spent, orjson.loads(text))
        self.figures.longest = max(self.figures.longest, longest)
        if longest > MAX_CALLBACK_SECONDS:
            detail = f"one callback of the loop takes {longest:.2f} s of CPU time; outcome {outcome[:200]}"
            return outcome, Finding(
                f"blocks the loop: {normalised(outcome)[:60]}", orjson.loads(text), detail
            )
        if spent > allowed:
            detail = f"{spent:.1f} s of CPU for {len(text)} bytes, {allowed:.1f} s are allowed; outcome {outcome[:200]}"
            return outcome, Finding(f"slow: {normalised(outcome)[:60]}", orjson.loads(text), detail)
        return outcome, None

    def _check(self, case: Any) -> str:
        with _cpu_limit():
            if self._loop is None:
                return self.target.check(case)
            return self._loop.run(self._in_time(case))

    async def _in_time(self, case: Any) -> str:
        self._opened.longest_callback = 0.0
        try:
            async with asyncio.timeout(MAX_SECONDS):
                return await self.target.check(self._opened, case)
        except TimeoutError as error:
            raise Fault("no end") from error


@contextlib.contextmanager
def _cpu_limit() -> Iterator[None]:
    """End a case that does not end, by the CPU time of the process; only the main thread can do that."""

    def end(_signal: int, _frame: object) -> None:
        raise Fault("no end of the CPU's work")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, MAX_CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def normalised(text: str) -> str:
    """Return an outcome without the parts that differ from case to case: quotations, numbers, long words."""
    text = re.sub(r'"[^"]{0,4000}"|\'[^\']{0,4000}\'', "Q", text[:400])
    return re.sub(r"\S{40,}", "W", re.sub(r"\d+", "0", text))[:160]


def signature(error: BaseException) -> str:
    """Return the kind of an error and the last line of our own code in its traceback."""
    if isinstance(error, BaseExceptionGroup):
        return signature(error.exceptions[0])
    while (
        isinstance(error, Fault)
        and error.__cause__ is not None
        and not isinstance(error.__cause__, TimeoutError)
    ):
        error = error.__cause__
    place = ""
    for frame in traceback.extract_tb(error.__traceback__):
        path = Path(frame.filename)
        if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in CODE:
            place = f"{path.relative_to(ROOT)}:{frame.name}"
    first = str(error).partition("\n")[0] if isinstance(error, Fault) else ""
    return f"{type(error).__name__} {place} {normalised(first)}".strip()


def traceback_text(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))[-6000:]


# --- the corpus


def keep(target: str, case: Any, *, note: str, folder: Path = CORPUS) -> Path:
    """Write a case where `test_fuzz.py` replays it from now on."""
    data = orjson.dumps({"note": note, "case": case}, option=orjson.OPT_INDENT_2)
    path = folder / target / f"{hashlib.sha256(data).hexdigest()[:12]}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data + b"\n")
    return path


def corpus_cases(folder: Path = CORPUS) -> list[tuple[str, Path]]:
    """Return every case of the corpus, by its target."""
    return [(path.parent.name, path) for path in sorted(folder.glob("*/*.json"))]


def load(path: Path) -> Any:
    return orjson.loads(path.read_bytes())["case"]


# --- mutations that most targets use


def mutated_tree(case: Any, random: Any) -> Any:
    return hostile_bodies.mutated(case, random)


def mutated_text(case: str, random: Any) -> str:
    """Return text in latin-1, with some bytes changed."""
    return hostile_bodies.scramble(case.encode("latin-1"), random).decode("latin-1")
