"""`find`, with its conditions and actions."""

from collections.abc import Callable, Generator, Mapping
from typing import Final

from mockube.apimachinery.regexp.errors import RegexpError
from mockube.container_runtime.simulated.shell import limits
from mockube.container_runtime.simulated.shell.process import (
    CommandStart,
    Effect,
    Output,
    Process,
    Program,
    ProgramUsageError,
    Run,
    write_text,
)
from mockube.container_runtime.simulated.shell.vfs.file_entry import FileError

from . import find_conditions
from .find_conditions import FoundFile
from .inputs import walk
from .launchers import run_other

_PATHS_PER_COMMAND: Final = 20


Evaluation = Generator[Effect, bytes | None, bool]
_Test = Callable[["_Finder", FoundFile], Evaluation]


class _Finder:
    def __init__(self, process: Process, words: list[str]) -> None:
        self.process = process
        self._words = words
        self._position = 0
        self._depth = 0
        self.maximum = 1 << 20
        self.minimum = 0
        self.depth_first = False
        self.is_pruned = False
        self.has_action = False
        self.collected: list[tuple[list[str], list[str]]] = []
        """The commands of `-exec … +`, with their arguments."""
        self.code = 0

    # --- the expression

    def parse(self) -> _Test:
        test = self._or() if self._position < len(self._words) else _always
        if self._position < len(self._words):
            raise ProgramUsageError(f"unrecognized: {self._words[self._position]}")
        if self.has_action:
            return test
        return _and(test, _print("\n"))

    def _peek(self) -> str:
        return self._words[self._position] if self._position < len(self._words) else ""

    def _next(self, option: str) -> str:
        if self._position >= len(self._words):
            raise ProgramUsageError(f"option requires an argument: {option}")
        self._position += 1
        return self._words[self._position - 1]

    def _or(self) -> _Test:
        self._depth += 1
        if self._depth > limits.MAX_NESTED_FIND:
            raise ProgramUsageError("too many parentheses")
        test = self._and()
        while self._peek() in ("-o", "-or"):
            self._position += 1
            test = _or(test, self._and())
        self._depth -= 1
        return test

    def _and(self) -> _Test:
        test = self._not()
        while self._peek() and self._peek() not in ("-o", "-or", ")"):
            if self._peek() in ("-a", "-and"):
                self._position += 1
            test = _and(test, self._not())
        return test

    def _not(self) -> _Test:
        negated = False
        while self._peek() in ("!", "-not"):
            self._position += 1
            negated = not negated
        test = self._primary()
        return _not(test) if negated else test

    def _primary(self) -> _Test:
        word = self._next("expression")
        if word == "(":
            test = self._or()
            if self._next("(") != ")":
                raise ProgramUsageError("unpaired '('")
            return test
        if word in ("-maxdepth", "-mindepth"):
            number = self._number(word)
            if word == "-maxdepth":
                self.maximum = number
            else:
                self.minimum = number
            return _always
        if word in _ACTIONS:
            self.has_action = word != "-prune"
            return _ACTIONS[word]
        if word in ("-exec", "-ok", "-execdir"):
            return self._exec(word)
        if word in ("-depth", "-d"):
            self.depth_first = True
            return _always
        return _simple(self._condition(word))

    def _number(self, option: str) -> int:
        text = self._next(option)
        if not text.isdecimal() or len(text) > 9:
            raise ProgramUsageError(f"invalid number '{text}'")
        return int(text)

    def _exec(self, option: str) -> _Test:
        self.has_action = True
        if option != "-exec":
            raise ProgramUsageError(f"{option} is not simulated")
        command: list[str] = []
        while (word := self._next(option)) != ";":
            if word == "+" and command and command[-1] == "{}":
                collected: list[str] = []
                self.collected.append((command[:-1], collected))
                return _collect(collected)
            command.append(word)
        if not command:
            raise ProgramUsageError("-exec requires an argument")
        return _execute(command)

    def _condition(self, word: str) -> Callable[[FoundFile], bool]:
        process = self.process
        match word:
            case "-true" | "-xdev" | "-mount" | "-follow" | "-noleaf" | "-daystart" | "-false":
                return lambda _: word != "-false"
            case "-empty":
                return lambda item: (
                    not list(process.host.files.children(item.path))
                    if item.entry.is_directory
                    else not item.entry.size
                )
            case "-name" | "-iname" | "-path" | "-ipath" | "-wholename":
                return find_conditions.pattern_test(word, self._next(word))
            case "-type":
                kinds = self._next(word).split(",")
                return lambda item: find_conditions.file_kind(item.entry) in kinds
            case "-size":
                return find_conditions.size_test(self._next(word))
            case "-perm":
                return find_conditions.mode_test(self._next(word))
            case "-mtime" | "-mmin" | "-ctime" | "-cmin" | "-atime" | "-amin":
                return find_conditions.time_test(process, word, self._next(word))
            case _:
                return self._rare_condition(word)

    def _rare_condition(self, word: str) -> Callable[[FoundFile], bool]:
        files = self.process.host.files
        match word:
            case "-newer":
                modified = files.entry(self.process.path(self._next(word))).modified
                return lambda item: item.entry.modified > modified
            case "-user" | "-group":
                text = self._next(word)
                number = 0 if text == "root" else int(text) if text.isdecimal() else -1
                return lambda item: (item.entry.user if word == "-user" else item.entry.group) == number
            case "-regex" | "-iregex":
                return find_conditions.regex_test(self._next(word), ignores_case=word == "-iregex")
            case _:
                raise ProgramUsageError(f"unrecognized: {word}")


# --- tests and actions


def _always(_finder: _Finder, _item: FoundFile) -> Evaluation:
    return True
    yield


def _simple(condition: Callable[[FoundFile], bool]) -> _Test:
    def test(_: _Finder, item: FoundFile) -> Evaluation:
        return condition(item)
        yield

    return test


def _and(left: _Test, right: _Test) -> _Test:
    def test(finder: _Finder, item: FoundFile) -> Evaluation:
        return (yield from left(finder, item)) and (yield from right(finder, item))

    return test


def _or(left: _Test, right: _Test) -> _Test:
    def test(finder: _Finder, item: FoundFile) -> Evaluation:
        return (yield from left(finder, item)) or (yield from right(finder, item))

    return test


def _not(inner: _Test) -> _Test:
    def test(finder: _Finder, item: FoundFile) -> Evaluation:
        return not (yield from inner(finder, item))

    return test


def _print(end: str) -> _Test:
    def action(_: _Finder, item: FoundFile) -> Evaluation:
        yield write_text(item.name + end)
        return True

    return action


def _prune(finder: _Finder, _: FoundFile) -> Evaluation:
    finder.is_pruned = True
    return True
    yield


def _quit(_finder: _Finder, _item: FoundFile) -> Evaluation:
    raise _Quit
    yield


def _delete(finder: _Finder, item: FoundFile) -> Evaluation:
    files = finder.process.host.files
    if item.name == ".":
        return True
    try:
        if item.entry.is_directory and list(files.children(item.path)):
            raise FileError("Directory not empty")  # noqa: TRY301 - one place reports all
        files.remove(item.path, recursive=True)
        finder.process.host.changes += 1
    except FileError as error:
        yield Output(2, f"find: {item.name}: {error}\n".encode())
        finder.code = 1
        return False
    return True


def _collect(collected: list[str]) -> _Test:
    def action(_: _Finder, item: FoundFile) -> Evaluation:
        collected.append(item.name)
        return True
        yield

    return action


def _execute(command: list[str]) -> _Test:
    def action(finder: _Finder, item: FoundFile) -> Evaluation:
        argv = [word.replace("{}", item.name) for word in command]
        return (yield from run_other(finder.process, argv)) == 0

    return action


class _Quit(Exception):
    pass


_ACTIONS: Final[Mapping[str, _Test]] = {
    "-print": _print("\n"),
    "-print0": _print("\0"),
    "-prune": _prune,
    "-delete": _delete,
    "-quit": _quit,
}


def find(process: Process) -> Run:
    words = [word for word in process.arguments if word not in ("-H", "-L", "-P")]
    starts: list[str] = []
    while words and not words[0].startswith(("-", "(", "!")):
        starts.append(words.pop(0))
    finder = _Finder(process, words)
    test = finder.parse()
    finder.depth_first = finder.depth_first or "-delete" in words
    try:
        for name in starts or ["."]:
            yield from _find_below(finder, test, name)
    except _Quit:
        return finder.code
    except RegexpError as error:
        raise ProgramUsageError(str(error)) from error
    for command, names in finder.collected:
        if names and (yield from run_other(process, [*command, *names])):
            finder.code = 1
    return finder.code


def _find_below(finder: _Finder, test: _Test, name: str) -> Run:
    files, root = finder.process.host.files, finder.process.path(name)
    if not files.has(root):
        yield finder.process.error(f"{name}: No such file or directory")
        finder.code = 1
        return 1
    paths = yield from walk(finder.process, root)
    pruned: list[str] = []
    for index, path in enumerate(reversed(paths) if finder.depth_first else paths):
        if index % _PATHS_PER_COMMAND == _PATHS_PER_COMMAND - 1:
            yield CommandStart()
        inner = path.removeprefix(root.rstrip("/"))
        depth = inner.count("/") if inner != "/" else 0
        is_below = any(path.startswith(f"{folder}/") for folder in pruned)
        if not finder.minimum <= depth <= finder.maximum or is_below or not files.has(path):
            continue
        shown_name = name if not depth else name.rstrip("/") + inner
        item = FoundFile(shown_name, path, files.link_entry(path), depth)
        finder.is_pruned = False
        yield from test(finder, item)
        if finder.is_pruned:
            pruned.append(path)
        elif not files.rights.may_list(path):
            yield finder.process.error(f"{shown_name}: Permission denied")
            finder.code = 1
    return 0


PROGRAMS: Final[Mapping[str, Program]] = {"find": find}
