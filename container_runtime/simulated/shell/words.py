"""The expansion of words: to fields, to one text, and to a pattern."""

from collections.abc import Callable, Generator, Sequence
from itertools import chain
from typing import Final

from . import limits
from .arithmetic import evaluate
from .braces import expand_braces
from .fields import Piece, field_text, has_pattern, matching_files, split_pieces
from .parameters import ExpressionVariables, expand_parameter
from .patterns import Pattern, Pieces, parse_pattern
from .process import CommandStart, Effect, count_work
from .state import ExpansionTooLong, Shell
from .streams import TextStream
from .syntax import Arithmetic, Parameter, Part, ProcessSubstitution, Substitution, Text, Tilde, Word

_WORDS_PER_COMMAND: Final = 20
_FIELDS_PER_COMMAND: Final = 100
_CHARACTERS_PER_COMMAND: Final = 1 << 16
_PARTS_PER_COMMAND: Final = 50
_EXPRESSION_PER_COMMAND: Final = 100
"""The length of an arithmetic expression that takes as long as a command."""
_TOO_LONG: Final = "the arguments are too long"

Expansion = Generator[Effect, bytes | None, str]
ExpandedPieces = Generator[Effect, bytes | None, list[Piece]]
Append = Callable[[Sequence[Piece]], None]


def expand_words(shell: Shell, words: Sequence[Word]) -> Generator[Effect, bytes | None, list[str]]:
    """Return the fields of all words."""
    fields: list[str] = []
    size = 0
    expanded_words = (
        chain.from_iterable(map(expand_braces, words)) if "braceexpand" in shell.options else words
    )
    for number, expanded_word in enumerate(expanded_words, start=1):
        if not number % _WORDS_PER_COMMAND:
            yield CommandStart()
        added = yield from _fields(shell, expanded_word, limits.MAX_EXPANDED - size)
        size += _weight(added)
        if size > limits.MAX_EXPANDED:
            raise ExpansionTooLong(_TOO_LONG)
        fields += added
    return fields


def _weight(texts: Sequence[str]) -> int:
    """Return how much parts of words count."""
    return sum(map(len, texts)) // 8 + 5 * len(texts)


def _is_one_field(text: Text) -> bool:
    """Tell whether a text is a field as it stands, as most words of scripts are."""
    return text.quoted or (bool(text.text) and not has_pattern([(text.text, False)]))


def _fields(shell: Shell, word: Word, maximum: int) -> Generator[Effect, bytes | None, list[str]]:
    if len(word) == 1 and isinstance(word[0], Text) and _is_one_field(word[0]):
        return [word[0].text]
    pieces = yield from expand_pieces(shell, word, maximum=maximum)
    separators = shell.variables.get("IFS")
    split = yield from split_pieces(pieces, " \t\n" if separators is None else separators)
    fields: list[str] = []
    size = 0
    for index, field in enumerate(split):
        if index % _FIELDS_PER_COMMAND == _FIELDS_PER_COMMAND - 1:
            yield CommandStart()
        names = [field_text(field)]
        yield from count_work(len(names[0]), _CHARACTERS_PER_COMMAND)
        if "noglob" not in shell.options and has_pattern(field):
            yield CommandStart()
            matching = yield from matching_files(shell.process, field)
            names = matching or ([] if "nullglob" in shell.features else names)
        size += _weight(names)
        if size > maximum:
            raise ExpansionTooLong(_TOO_LONG)
        fields += names
    return fields


def expand_text(shell: Shell, word: Word) -> Expansion:
    """Return the expansion of a word as one text, without splitting."""
    if len(word) == 1 and isinstance(word[0], Text):
        return word[0].text
    pieces = yield from expand_pieces(shell, word)
    return "".join(" " if piece.breaks else piece.text for piece in pieces)


def expand_pattern(shell: Shell, word: Word) -> Generator[Effect, bytes | None, Pattern]:
    """Return the expansion of a word as a pattern, in which quoted characters stand for themselves."""
    return (yield from parse_pattern((yield from pattern_pieces(shell, word))))


def pattern_pieces(shell: Shell, word: Word) -> Generator[Effect, bytes | None, Pieces]:
    pieces = yield from expand_pieces(shell, word)
    return [(" ", False) if piece.breaks else (piece.text, piece.quoted) for piece in pieces]


def expand_pieces(shell: Shell, word: Word, *, maximum: int = limits.MAX_EXPANDED) -> ExpandedPieces:
    """Expand everything but field splitting and file name patterns."""
    pieces: list[Piece] = []
    size = 0
    for number, part in enumerate(word, start=1):
        if not number % _PARTS_PER_COMMAND:
            yield CommandStart()
        if isinstance(part, Text):
            added = [Piece(part.text, part.quoted)]
        else:
            added = yield from _part(shell, part)
        size += _weight([piece.text for piece in added])
        if size > maximum + 5 * len(word):
            raise ExpansionTooLong(_TOO_LONG if maximum != limits.MAX_EXPANDED else "the value is too long")
        pieces += added
    return pieces


def _part(shell: Shell, part: Part) -> ExpandedPieces:
    match part:
        case Parameter():
            return (yield from expand_parameter(shell, part, _EXPANSIONS))
        case Substitution(script=script, quoted=quoted):
            text = yield from shell.capture(script)
            return [Piece(text, quoted, splits=not quoted)]
        case Arithmetic(expression=expression, quoted=quoted):
            value = yield from evaluate_word(shell, expression)
            return [Piece(str(value), quoted, splits=not quoted)]
        case Tilde(user=user):
            return [Piece(_directory_of(shell, user), quoted=True)]
        case ProcessSubstitution(script=script):
            if part.is_output:
                return [Piece(shell.open_output_pipe(part.script), quoted=True)]
            return (yield from _process_substitution(shell, part.script))
        case Text(text=text, quoted=quoted):
            return [Piece(text, quoted)]


def evaluate_word(shell: Shell, expression: Word) -> Generator[Effect, bytes | None, int]:
    """Return the value of an arithmetic expression."""
    text = yield from expand_text(shell, expression)
    yield from count_work(len(text), _EXPRESSION_PER_COMMAND)
    return evaluate(text, ExpressionVariables(shell))


def _directory_of(shell: Shell, user: str) -> str:
    if user == "+":
        return shell.process.directory
    if user == "-":
        return shell.variables.get("OLDPWD") or "~-"
    if not user:
        directory = shell.variables.get("HOME")
        return directory if directory is not None else "/root" if shell.process.host.user == 0 else "/"
    return "/root" if user == "root" else f"~{user}"


def _process_substitution(shell: Shell, script: object) -> ExpandedPieces:
    text = yield from shell.capture(script, keeps_end=True)  # type: ignore[arg-type]
    descriptor = shell.free_descriptor()
    data = text.encode("utf-8", "surrogateescape")
    shell.descriptors[descriptor] = TextStream(shell.process.host, data)
    return [Piece(f"/dev/fd/{descriptor}", quoted=True)]


class Expansions:
    """The functions of this module that the expansion of parameters needs."""

    pieces = staticmethod(expand_pieces)
    text = staticmethod(expand_text)
    pattern = staticmethod(expand_pattern)
    number = staticmethod(evaluate_word)


_EXPANSIONS: Final = Expansions()
