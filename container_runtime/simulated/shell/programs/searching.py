"""`grep` and its relatives."""

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from posixpath import dirname
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery.regexp.errors import RegexpError
from mockube.apimachinery.regexp.matcher import check, contains_match_of
from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.options import ProgramOptions, parse_options
from mockube.container_runtime.simulated.shell.posix_matches import SearchSteps, find_matches
from mockube.container_runtime.simulated.shell.process import (
    CommandStart,
    Effect,
    Process,
    Program,
    ProgramUsageError,
    Run,
    Steps,
    count_work,
    read_input,
    slices,
    write_text,
)
from mockube.container_runtime.simulated.shell.regular_expressions import (
    BadRegularExpression,
    basic_expression,
    extended_expression,
    literal_expression,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError, IsFolder
from mockube.container_runtime.simulated.shell.vfs.file_system import FileSystem

from . import inputs

_LONG: Final = {
    "ignore-case": "i", "invert-match": "v", "count": "c", "quiet": "q", "silent": "q", "line-number": "n", "only-matching": "o",
    "extended-regexp": "E", "fixed-strings": "F", "perl-regexp": "P", "recursive": "r", "files-with-matches": "l", "word-regexp": "w",
    "files-without-match": "L", "line-regexp": "x", "no-messages": "s", "regexp": "e", "file": "f", "max-count": "m", "with-filename": "H",
    "no-filename": "h", "after-context": "A", "before-context": "B", "context": "C", "color": "K", "colour": "K", "text": "a", "line-buffered": "a",
}  # fmt: skip


_SEARCHED_AT_ONCE: Final = 2048
_LINES_PER_COMMAND: Final = 15
_OUTPUT_PER_COMMAND: Final = 10


class _Search(Struct, kw_only=True):
    options: ProgramOptions
    expression: str
    instructions: int
    """The number of instructions of the expression."""
    shows_names: bool
    before: int
    after: int
    limit: int
    has_output: bool = False
    """Whether lines of an earlier file were shown."""
    steps: SearchSteps = field(default_factory=SearchSteps)
    match_steps: SearchSteps = field(default_factory=SearchSteps)
    """The searches for matches that are shown."""
    lines: int = 0
    scanned: int = 0
    """What was searched up to now."""


def grep(process: Process) -> Run:
    options = parse_options(process.arguments, "HhnlLoqvsrRiwxFEac" + "m:A:B:C:e:f:KP", long=_LONG, code=2)
    names = list(options.arguments)
    patterns = yield from _patterns(process, options, names)
    try:
        expression = _expression(process, options, patterns)
        return (yield from _search_all(process, options, expression, names))
    except (BadRegularExpression, RegexpError) as error:
        raise ProgramUsageError(f"bad regex '{patterns[0]}': {error}", 2) from error


def _patterns(
    process: Process, options: ProgramOptions, names: list[str]
) -> Generator[Effect, bytes | None, list[str]]:
    patterns = [line for text in options.all("e") for line in text.split("\n")]
    for name in options.all("f"):
        try:
            data = yield from inputs.read_operand(process, name)
        except FileError as error:
            raise ProgramUsageError(f"{name}: {error}", 2) from error
        patterns += yield from inputs.split_lines(data)
    if not options.has_any("ef"):
        if not names:
            raise ProgramUsageError("usage: grep [-HhnlLoqvsrRiwFE] [-m N] [-A|B|C N] PATTERN [FILE]...", 2)
        patterns = names.pop(0).split("\n")
    return patterns


def _expression(process: Process, options: ProgramOptions, patterns: Sequence[str]) -> str:
    convert = basic_expression
    if "F" in options or process.name == "fgrep":
        convert = literal_expression
    elif options.has_any("EP") or process.name == "egrep":
        convert = extended_expression
    if sum(map(len, patterns)) + len(patterns) > limits.MAX_EXPRESSION:
        raise ProgramUsageError("the pattern is too large", 2)
    alternatives = [f"(?:{convert(pattern)})" for pattern in patterns]
    expression = "|".join(alternatives) if alternatives else "[^\\x{0}-\\x{10ffff}]"
    if "x" in options:
        expression = f"^(?:{expression})$"
    elif "w" in options:
        expression = f"(?:^|\\b)(?:{expression})(?:\\b|$)"
    return f"(?i:{expression})" if "i" in options else expression


def _search_all(process: Process, options: ProgramOptions, expression: str, names: list[str]) -> Run:
    is_recursive = options.has_any("rR")
    paths = list(names)
    if is_recursive:
        paths = []
        for path in _files(process, names or ["."], follows="R" in options):
            paths.append(path)
            if not len(paths) % inputs.FILES_AT_ONCE:
                yield CommandStart()
    context = options.get("C", "0")
    search = _Search(
        options=options,
        expression=expression,
        instructions=check(expression),
        shows_names=("H" in options or len(paths) > 1 or is_recursive) and "h" not in options,
        before=min(inputs.number_of(options.get("B", context)), limits.MAX_LINES),
        after=inputs.number_of(options.get("A", context)),
        limit=inputs.number_of(options.get("m")) if "m" in options else -1,
    )
    code, has_match = 0, False
    for number, name in enumerate(paths or ["-"], start=1):
        if not number % inputs.FILES_AT_ONCE:
            yield CommandStart()
        file = _FileSearch(search, name)
        try:
            yield from _search(process, file)
        except FileError as error:
            if "s" not in options:
                yield process.error(f"{name}: {error}")
            code = 2
            continue
        has_match = has_match or file.has_result
        if has_match and "q" in options:
            return 0
    return code or int(not has_match)


def _search(process: Process, file: "_FileSearch") -> Steps:
    """Search a file, or the standard input as it arrives, up to the last line that matters."""
    if file.name != "-":
        try:
            data = yield from inputs.read_path(process, file.name)
        except IsFolder:
            if process.host.has_gnu_programs:
                raise
            data = b""  # as busybox reads it
        yield from _feed(file, data)
    else:
        while not file.is_done and (block := (yield from read_input(inputs.BLOCK))):
            yield from _feed(file, block)
    yield from _write(file, file.finish())


def _feed(file: "_FileSearch", data: bytes) -> Steps:
    for part in slices(data, _SEARCHED_AT_ONCE):
        if file.is_done:
            break
        yield from count_work(part.count(b"\n"), _LINES_PER_COMMAND)
        yield from _write(file, file.feed(part))


def _write(file: "_FileSearch", texts: Iterator[str]) -> Steps:
    output: list[str] = []
    for text in texts:
        output.append(text)
        if not len(output) % _OUTPUT_PER_COMMAND:
            yield CommandStart()
    yield from file.count_steps()
    if output:
        yield write_text("".join(output))


def _files(
    process: Process, names: Sequence[str], *, follows: bool, above: frozenset[str] = frozenset()
) -> Iterator[str]:
    """Yield the files below folders: of links in them, GNU's grep follows none, or all with `-R`, and busybox' those that lead to files.

    `above` are the folders from which links lead here.
    """
    files = process.host.files
    for name in names:
        path = process.path(name)
        if not files.exists(path) or not files.entry(path).is_directory:
            yield name
            continue
        path = files.resolve(path)
        for child in files.walk(path):
            entry, below = files.link_entry(child), name.rstrip("/") + child.removeprefix(path)
            if not entry.target:
                yield from () if entry.is_directory else [below]
            elif not files.exists(child) or not files.entry(child).is_directory:
                yield from [below] if follows or not process.host.has_gnu_programs else ()
            elif follows and process.host.has_gnu_programs and not _is_above(files, child, {*above, path}):
                yield from _files(process, [below], follows=True, above=above | {path})


def _is_above(files: FileSystem, link: str, folders: Iterable[str]) -> bool:
    """Return whether a link leads to a folder that contains it, or one of the folders from which links led to it."""
    target = f"{files.resolve(link).rstrip('/')}/"
    return any(f"{folder.rstrip('/')}/".startswith(target) for folder in (*folders, dirname(link)))


class _FileSearch:
    """The search of one file, line by line."""

    def __init__(self, search: _Search, name: str) -> None:
        self.name = name
        self._search = search
        self._title = "(standard input)" if name == "-" else name
        self._rest = bytearray()
        """The beginning of a line whose end was not read yet."""
        self._index = 0
        self._matches = 0
        self._earlier: deque[tuple[int, str]] = deque(maxlen=search.before)
        """The lines before the present one that were not shown."""
        self._following = 0
        """The number of lines of context that are still shown."""
        self._last_shown = -1
        self._contains_match = contains_match_of(search.expression)
        # Options are looked up once for a file, not for each of its lines.
        self._stops_at_first = search.options.has_any("qlL")
        self._inverts = "v" in search.options
        self._shows_lines = not search.options.has_any("qclL")

    @property
    def is_done(self) -> bool:
        """Whether later lines do not matter."""
        return (self._stops_at_first and self._matches > 0) or (
            self._matches == self._search.limit and self._following == 0
        )

    @property
    def has_result(self) -> bool:
        shows_without_match = "L" in self._search.options and not self._search.options.has_any("qc")
        return (self._matches > 0) is not shows_without_match

    def count_steps(self) -> Steps:
        yield from self._search.steps.count()
        yield from self._search.match_steps.count()

    def feed(self, block: bytes) -> Iterator[str]:
        """Search more of the file; yield the output."""
        first, *others = block.split(b"\n")
        self._rest += first
        if len(self._rest) > limits.MAX_INPUT:
            raise ProgramUsageError("the input is too long", 2)
        if not others:
            return
        lines = [bytes(self._rest), *others[:-1]]
        self._rest = bytearray(others[-1])
        yield from self._search_lines(lines)

    def finish(self) -> Iterator[str]:
        """Yield the output at the end of the file."""
        options, rest = self._search.options, bytes(self._rest)
        yield from self._search_lines([rest] if rest else [])
        if "q" in options:
            return
        if "c" in options:
            yield f"{self._title}:{self._matches}\n" if self._search.shows_names else f"{self._matches}\n"
        elif options.has_any("lL"):
            yield from [f"{self._title}\n"] if self.has_result else ()
        else:
            self._search.has_output = self._search.has_output or self._last_shown >= 0

    def _search_lines(self, lines: Sequence[bytes]) -> Iterator[str]:
        search = self._search
        search.lines += len(lines)
        if search.lines > limits.MAX_LINES:
            raise ProgramUsageError("the input has too many lines", 2)
        search.steps.add(search.instructions * (sum(map(len, lines)) + len(lines)))
        may_end_early = self._stops_at_first or "m" in search.options
        for line in lines:
            if may_end_early and self.is_done:
                break
            yield from self._search_line(line.decode("utf-8", "surrogateescape"))
            self._index += 1
        if search.steps.total > limits.MAX_GREP_STEPS:
            raise ProgramUsageError("the pattern is too large for this input", 2)

    def _search_line(self, line: str) -> Iterator[str]:
        search = self._search
        is_open = self._matches != search.limit
        if is_open and self._contains_match(line) is not self._inverts:
            self._matches += 1
            if self._shows_lines:
                yield from self._only_matches(line) if "o" in search.options else self._with_context(line)
        elif self._following:
            self._following -= 1
            self._last_shown = self._index
            yield f"{self._head(self._index, '-')}{line}\n"
        else:
            self._earlier.append((self._index, line))

    def _only_matches(self, line: str) -> Iterator[str]:
        self._search.scanned += len(line) ** 2
        if self._search.scanned > limits.MAX_SCANNED:
            raise ProgramUsageError("the pattern is too large for this input", 2)
        if "v" in self._search.options:
            return
        for spans in find_matches(self._search.expression, line, count_steps=self._search.match_steps.add):
            start, end = spans[0]
            if end > start:
                yield f"{self._head(self._index, ':')}{line[start:end]}\n"

    def _with_context(self, line: str) -> Iterator[str]:
        search = self._search
        first = self._earlier[0][0] if self._earlier else self._index
        is_apart = first > self._last_shown + 1 if self._last_shown >= 0 else search.has_output
        if is_apart and (search.before or search.after):
            yield "--\n"
        for index, earlier_line in self._earlier:
            yield f"{self._head(index, '-')}{earlier_line}\n"
        self._earlier.clear()
        yield f"{self._head(self._index, ':')}{line}\n"
        self._last_shown, self._following = self._index, search.after

    def _head(self, index: int, mark: str) -> str:
        name = f"{self._title}{mark}" if self._search.shows_names else ""
        return name + (f"{index + 1}{mark}" if "n" in self._search.options else "")


PROGRAMS: Final[Mapping[str, Program]] = dict.fromkeys(("grep", "egrep", "fgrep"), grep)
