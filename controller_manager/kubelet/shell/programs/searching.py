"""`grep` and its relatives."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from mockube.apimachinery.regexp.errors import RegexpError
from mockube.apimachinery.regexp.matcher import check, contains_match
from mockube.apimachinery.regexp.posix import MAX_SCANNED, find_matches
from mockube.controller_manager.kubelet.shell.filesystem import FileError
from mockube.controller_manager.kubelet.shell.process import (
    Process,
    Program,
    ProgramUsageError,
    Run,
    write_text,
)
from mockube.controller_manager.kubelet.shell.programs.inputs import (
    InputFile,
    number_of,
    read_files,
    split_lines,
)
from mockube.controller_manager.kubelet.shell.programs.options import ProgramOptions, parse_options
from mockube.controller_manager.kubelet.shell.regular_expressions import (
    BadRegularExpression,
    basic_expression,
    extended_expression,
    literal_expression,
)

MAX_SEARCH_STEPS: Final = 200_000_000
"""The maximum product of the instructions of a pattern and the characters of the input: 0.2 s."""
_LONG: Final = {
    "ignore-case": "i", "invert-match": "v", "count": "c", "quiet": "q", "silent": "q", "line-number": "n", "only-matching": "o",
    "extended-regexp": "E", "fixed-strings": "F", "perl-regexp": "P", "recursive": "r", "files-with-matches": "l", "word-regexp": "w",
    "files-without-match": "L", "line-regexp": "x", "no-messages": "s", "regexp": "e", "file": "f", "max-count": "m", "with-filename": "H",
    "no-filename": "h", "after-context": "A", "before-context": "B", "context": "C", "color": "K", "colour": "K", "text": "a",
}  # fmt: skip


class _Search(Struct, kw_only=True):
    options: ProgramOptions
    expression: str
    shows_names: bool
    before: int
    after: int
    limit: int
    has_output: bool = False
    """Whether lines of an earlier file were shown."""


def grep(process: Process) -> Run:
    options = parse_options(process.arguments, "HhnlLoqvsrRiwxFEac" + "m:A:B:C:e:f:KP", long=_LONG, code=2)
    names = list(options.arguments)
    patterns = _patterns(process, options, names)
    try:
        expression = _expression(process, options, patterns)
        return (yield from _search_all(process, options, expression, names))
    except (BadRegularExpression, RegexpError) as error:
        raise ProgramUsageError(f"bad regex '{patterns[0]}': {error}", 2) from error


def _patterns(process: Process, options: ProgramOptions, names: list[str]) -> list[str]:
    patterns = [line for text in options.lists.get("e", ()) for line in text.split("\n")]
    for name in options.lists.get("f", ()):
        try:
            data = process.host.files.read(process.path(name))
        except FileError as error:
            raise ProgramUsageError(f"{name}: {error}", 2) from error
        patterns += split_lines(data)
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
    alternatives = [f"(?:{convert(pattern)})" for pattern in patterns]
    expression = "|".join(alternatives) if alternatives else "[^\\x{0}-\\x{10ffff}]"
    if "x" in options:
        expression = f"^(?:{expression})$"
    elif "w" in options:
        expression = f"(?:^|\\b)(?:{expression})(?:\\b|$)"
    return f"(?i:{expression})" if "i" in options else expression


def _search_all(process: Process, options: ProgramOptions, expression: str, names: list[str]) -> Run:
    is_recursive = options.has_any("rR")
    paths = list(_files(process, names or ["."])) if is_recursive else names
    context = options.get("C", "0")
    search = _Search(
        options=options,
        expression=expression,
        shows_names=("H" in options or len(paths) > 1 or is_recursive) and "h" not in options,
        before=number_of(options.get("B", context)),
        after=number_of(options.get("A", context)),
        limit=number_of(options.get("m")) if "m" in options else -1,
    )
    quiet_process = process if "s" not in options else process.child(process.argv)
    inputs = yield from read_files(quiet_process, paths, code=2)
    cost = check(expression) * (len(inputs.data) + 1)
    if cost > MAX_SEARCH_STEPS:
        raise ProgramUsageError("the pattern is too large for this input", 2)
    has_match = False
    for file in inputs:
        texts, matched = _search(search, file)
        has_match = has_match or matched
        if "q" not in options:
            yield write_text("".join(texts))
    if has_match and "q" in options:
        return 0
    return inputs.code or int(not has_match)


def _files(process: Process, names: Sequence[str]) -> Iterator[str]:
    files = process.host.files
    for name in names:
        path = process.path(name)
        if not files.exists(path) or not files.entry(path).is_directory:
            yield name
            continue
        for child in files.walk(path):
            if not files.link_entry(child).is_directory:
                yield name.rstrip("/") + child.removeprefix(path)


def _search(search: _Search, file: InputFile) -> tuple[list[str], bool]:
    """Return the output for a file, and whether it has a matching line."""
    options = search.options
    lines = split_lines(file.data)
    inverts = "v" in options
    matching: list[int] = []
    for index, line in enumerate(lines):
        if len(matching) == search.limit:
            break
        if contains_match(search.expression, line) != inverts:
            matching.append(index)
    title = "(standard input)" if file.name == "-" else file.name
    if "c" in options:
        return [f"{title}:{len(matching)}\n" if search.shows_names else f"{len(matching)}\n"], bool(matching)
    if options.has_any("lL"):
        shows = bool(matching) is ("l" in options)
        return [f"{title}\n"] if shows else [], shows
    if "o" in options:
        if sum(len(lines[index]) ** 2 for index in matching) > MAX_SCANNED:
            raise ProgramUsageError("the pattern is too large for this input", 2)
        return list(_only_matches(search, lines, matching, title)), bool(matching)
    return list(_with_context(search, lines, matching, title)), bool(matching)


def _head(search: _Search, title: str, index: int, mark: str) -> str:
    name = f"{title}{mark}" if search.shows_names else ""
    return name + (f"{index + 1}{mark}" if "n" in search.options else "")


def _only_matches(
    search: _Search, lines: Sequence[str], matching: Sequence[int], title: str
) -> Iterator[str]:
    if "v" in search.options:
        return
    for index in matching:
        line = lines[index]
        for spans in find_matches(search.expression, line):
            start, end = spans[0]
            if end > start:
                yield f"{_head(search, title, index, ':')}{line[start:end]}\n"


def _with_context(
    search: _Search, lines: Sequence[str], matching: Sequence[int], title: str
) -> Iterator[str]:
    selected = set(matching)
    last = -1
    for match in matching:
        first = max(match - search.before, last + 1)
        is_apart = first > last + 1 if last >= 0 else search.has_output
        if is_apart and (search.before or search.after):
            yield "--\n"
        for index in range(first, min(match + search.after + 1, len(lines))):
            if index <= last or (index > match and index in selected):
                if index in selected and index > match:
                    break
                continue
            mark = ":" if index in selected else "-"
            yield f"{_head(search, title, index, mark)}{lines[index]}\n"
            last = index
    search.has_output = search.has_output or last >= 0


PROGRAMS: Final[Mapping[str, Program]] = dict.fromkeys(("grep", "egrep", "fgrep"), grep)
