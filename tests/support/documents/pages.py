"""A page of the documentation as a script: its commands, its programs and the files that the reader creates.

- A `console` block is a session: `$ ` begins a command, what follows is what it prints. Where a block shows no output
  at all, it is a list of commands, and their output is not compared.
- A `python` block is a program; a `text` block right below it is what it prints.
- A block that begins with a comment that is a file's name is that file.
- `*Not run by the tests: REASON*`, a paragraph right above, skips the block and gives the reason to readers. The words
  `of this page` may follow `tests`, if another test runs the commands.
"""

import re
import subprocess
from dataclasses import dataclass
from itertools import pairwise, zip_longest

_BLOCK = re.compile(r"^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_NOT_RUN = re.compile(r"\*Not run by the tests(?: of this page)?: (?P<reason>[^*]+?)\.?\*\s*\Z")
_FILE = re.compile(r"(?:#|//|<!--) (?P<name>[\w./-]+\.\w+)(?: -->)?\n")
_SECTION = re.compile(r"^## (?P<title>.+)$", re.MULTILINE)
_PROMPT = "$ "

SHELLS = frozenset({"sh", "bash", "shell", "zsh"})
"""Languages in which a command would be overlooked: sessions are `console`, scripts are files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    language: str
    line: int
    text: str
    not_run: str
    """The reason, if there is one."""
    follows: bool
    """Whether the block directly follows the one above."""

    @property
    def file(self):
        """Return the name of the file that the block contains, if it contains one."""
        match = _FILE.match(self.text)
        return match["name"] if match else None


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    line: int
    text: str
    output: str | None
    """None: the output is not compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    line: int
    text: str
    output: str | None


def blocks(page):
    end = 0
    for match in _BLOCK.finditer(page):
        between = page[end : match.start()]
        reason = _NOT_RUN.search(between)
        yield Block(
            language=match["language"],
            line=page.count("\n", 0, match.start()) + 1,
            text=match["text"],
            not_run=" ".join(reason["reason"].split()) if reason else "",
            follows=not between.strip(),
        )
        end = match.end()


def steps(page):
    """The actions of a reader, from top to bottom."""
    listed = list(blocks(page))
    for block, below in zip_longest(listed, listed[1:]):
        if block.not_run:
            continue
        if block.file:
            yield File(name=block.file, text=block.text)
        elif block.language == "console":
            yield from _commands(block)
        elif block.language == "python":
            printed = below is not None and below.follows and below.language == "text"
            yield Program(line=block.line, text=block.text, output=below.text if printed else None)


def sections(page):
    """Yield a page's sections of the second level by their titles, with what precedes the first as "", at their lines."""
    starts = [0, *(match.start() for match in _SECTION.finditer(page))]
    for start, end in pairwise([*starts, len(page)]):
        title = _SECTION.match(page, start)
        yield title["title"] if title else "", "\n" * page.count("\n", 0, start) + page[start:end]


def _commands(block):
    parts = list(_parts(block))
    silent = not any(output for _, _, output in parts)
    for line, text, output in parts:
        yield Command(line=line, text=text, output=None if silent else output)


def _parts(block):
    """Yield line, command and output of each prompt."""
    lines = block.text.splitlines(keepends=True)
    if not lines or not lines[0].startswith(_PROMPT):
        raise ValueError(f"line {block.line}: a session begins with `{_PROMPT}`")
    starts = [number for number, line in enumerate(lines) if line.startswith(_PROMPT)]
    for start, end in pairwise([*starts, len(lines)]):
        length = _length_of_command(lines[start:end])
        command = "".join(lines[start : start + length]).removeprefix(_PROMPT)
        yield block.line + 1 + start, command.rstrip("\n"), "".join(lines[start + length : end])


def _length_of_command(lines):
    """Split into commands: a command continues until a shell parses it as complete."""
    for length in range(1, len(lines) + 1):
        text = "".join(lines[:length]).removeprefix(_PROMPT)
        checked = subprocess.run(["bash", "-n", "-c", text], capture_output=True, check=False)
        if not checked.stderr and not text.rstrip("\n").endswith("\\"):
            return length
    raise ValueError(f"no command ends here: {lines[0]}")
