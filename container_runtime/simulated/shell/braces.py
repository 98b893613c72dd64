"""Brace expansion, as bash has it: `{a,b}` and `{1..3}`."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product
from typing import Final

from . import limits
from .state import ExpansionError
from .syntax import Part, Text, Word

_RANGE: Final = re.compile(r"(-?[0-9]{1,9}|[A-Za-z])\.\.(-?[0-9]{1,9}|[A-Za-z])(?:\.\.(-?[0-9]{1,9}))?")
Atom = str | Part
"""An unquoted character, or another part."""


def expand_braces(word: Word) -> Iterable[Word]:
    """Yield the words that a word with braces stands for."""
    if not any(isinstance(part, Text) and not part.quoted and "{" in part.text for part in word):
        return (word,)
    atoms: list[Atom] = []
    for part in word:
        atoms += part.text if isinstance(part, Text) and not part.quoted else [part]
    if atoms.count("{") * len(atoms) > limits.MAX_BRACE_STEPS:
        raise ExpansionError("braces stand for too many words")
    choices = _choices(atoms, 0)
    return (tuple(_parts(expanded)) for expanded in _combinations(choices))


def _parts(atoms: Sequence[Atom]) -> Iterator[Part]:
    text: list[str] = []
    for atom in atoms:
        if isinstance(atom, str):
            text.append(atom)
            continue
        if text:
            yield Text("".join(text), quoted=False)
            text = []
        yield atom
    if text:
        yield Text("".join(text), quoted=False)


def _combinations(choices: Sequence[Sequence[Sequence[Atom]]]) -> Iterator[list[Atom]]:
    return ([atom for choice in combination for atom in choice] for combination in product(*choices))


def _choices(atoms: Sequence[Atom], depth: int) -> list[list[list[Atom]]]:
    """Return the alternatives of all parts of a word, one after the other."""
    if depth > limits.MAX_NESTED_BRACES:
        raise ExpansionError("braces are nested too deeply")
    choices: list[list[list[Atom]]] = []
    count = 1
    position = 0
    while position < len(atoms):
        alternatives, end = _alternatives(atoms, position, depth) if atoms[position] == "{" else (None, 0)
        if alternatives is None:
            choices.append([[atoms[position]]])
            position += 1
            continue
        count *= len(alternatives)
        if count * len(atoms) > limits.MAX_BRACE_STEPS or count > limits.MAX_BRACE_WORDS:
            raise ExpansionError("braces stand for too many words")
        choices.append(alternatives)
        position = end
    return choices


def _alternatives(atoms: Sequence[Atom], start: int, depth: int) -> tuple[list[list[Atom]] | None, int]:
    """Return what braces stand for and their end; None if they are no expansion."""
    nesting, commas = 0, []
    for position in range(start, len(atoms)):
        atom = atoms[position]
        nesting += {"{": 1, "}": -1}.get(atom, 0) if isinstance(atom, str) else 0
        if atom == "," and nesting == 1:
            commas.append(position)
        if nesting == 0:
            content = atoms[start + 1 : position]
            if commas:
                edges = [start, *commas, position]
                parts = [atoms[first + 1 : last] for first, last in pairwise(edges)]
                choices = (_choices(part, depth + 1) for part in parts)
                return [expanded for each in choices for expanded in _combinations(each)], position + 1
            return _range(content), position + 1
    return None, 0


def _range(content: Sequence[Atom]) -> list[list[Atom]] | None:
    text = "".join(atom if isinstance(atom, str) else "\0" for atom in content)
    match = _RANGE.fullmatch(text)
    if match is None or match[1].isalpha() != match[2].isalpha():
        return None
    is_text = match[1].isalpha()
    first, last = (ord(end) if is_text else int(end) for end in (match[1], match[2]))
    step = abs(int(match[3] or 1)) or 1
    if abs(last - first) // step >= limits.MAX_BRACE_WORDS:
        raise ExpansionError("braces stand for too many words")
    numbers = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    width = max(map(len, (match[1], match[2]))) if _has_zeros(match[1]) or _has_zeros(match[2]) else 0
    return [list(chr(number) if is_text else f"{number:0{width}}") for number in numbers]


def _has_zeros(text: str) -> bool:
    digits = text.lstrip("-")
    return len(digits) > 1 and digits.startswith("0")
