"""Reads a page of a lesson: its commands, and the output that it shows for them.

A block of a shell is commands, without its prompts; a block of another kind right after it, introduced by words such as
`The output is similar to`, is their output.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_BLOCK = re.compile(
    r"^(?P<indent>[ \t]*)```[ \t]*(?P<language>[\w-]*)[^\n]*\n(?P<text>.*?)^[ \t]*```[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
_SHELLS = frozenset({"bash", "console", "sh", "shell", "zsh"})
_MANIFESTS = frozenset({"yaml", "yml"})
_OUTPUTS = frozenset({"", "console", "json", "none", "output", "text"})
_INTRODUCTION = re.compile(
    r"(?i)output|similar|should (?:see|be)|shows|look like|prints|returns|response|you(?:'ll| will)? see"
)
_TABLE = re.compile(r"^[A-Z][A-Z-]+(?:[ \t]{2,}[A-Z][A-Z()/-]+)+\s*$|^NAME\s*$", re.MULTILINE)
"""The head of a table that kubectl prints."""
_PROMPT = re.compile(r"^\$ (?=\S)", re.MULTILINE)
_COMMAND_WORD = re.compile(r"^(?:kubectl|curl|cat|echo|export|helm)\b")


_SAMPLE = re.compile(r"""\{\{[%<]\s*(?:code_sample|codenew|code)\b[^%>]*?\bfile="([^"]+)\"""")
"""A file of the examples that a page shows."""


class Step(NamedTuple):
    line: int
    command: str
    output: str = ""
    """What the page shows; "" if it shows nothing."""
    manifest: str = ""
    """The last manifest that the page shows before the step, which the reader writes into a file."""

    @property
    def title(self) -> str:
        """The command on one line, by which the list of known differences names it."""
        return " ".join(self.command.split())[:100]


class _Block(NamedTuple):
    line: int
    language: str
    text: str
    introduction: str

    @property
    def is_command(self) -> bool:
        if _TABLE.match(self.text):
            return False
        return self.language in _SHELLS or (not self.language and bool(_COMMAND_WORD.match(self.text)))


def read_steps(page: str) -> Iterator[Step]:
    """Yield the steps of a page in order. Each block of commands is one step."""
    blocks, manifest = [*_blocks(page)], ""
    for number, block in enumerate(blocks):
        if block.language in _MANIFESTS:
            manifest = block.text
        if not block.is_command:
            continue
        command, shown = _split_session(block.text)
        following = blocks[number + 1] if number + 1 < len(blocks) else None
        if not shown and following is not None and _is_output(following):
            shown = following.text
        yield Step(block.line, command, shown, manifest)


def read_samples(page: str) -> dict[str, str]:
    """Return the paths of the examples that a page shows, by the names of their files."""
    return {path.rpartition("/")[2]: path for path in _SAMPLE.findall(page)}


def _is_output(block: _Block) -> bool:
    has_words = bool(_INTRODUCTION.search(block.introduction)) or not block.introduction.strip()
    is_near = block.introduction.count("\n\n") <= 3 and "\n#" not in block.introduction
    is_output = block.language in _OUTPUTS or bool(_TABLE.match(block.text))
    return not block.is_command and is_output and has_words and is_near


def _split_session(text: str) -> tuple[str, str]:
    """Return the commands and the output of a block with prompts; one without prompts is commands only."""
    if not _PROMPT.match(text):
        table = _TABLE.search(text)
        return (text[: table.start()].rstrip(), text[table.start() :]) if table else (text.rstrip(), "")
    commands, shown, is_continued = [], [], False
    for line in text.splitlines():
        if is_continued or _PROMPT.match(line):
            commands.append(_PROMPT.sub("", line))
            is_continued = line.endswith("\\")
        else:
            shown.append(line)
    return "\n".join(commands), "\n".join(shown)


def _blocks(page: str) -> Iterator[_Block]:
    page, end = re.sub(r"<!--.*?-->", lambda comment: "\n" * comment[0].count("\n"), page, flags=re.DOTALL), 0
    for match in _BLOCK.finditer(page):
        indent = match["indent"]
        text = "\n".join(line.removeprefix(indent) for line in match["text"].splitlines())
        line = page.count("\n", 0, match.start()) + 1
        yield _Block(line, match["language"].lower(), text, page[end : match.start()])
        end = match.end()
