"""Rule: a suppression comment names the check that it disables."""

import re
import tokenize
from collections.abc import Iterator
from io import StringIO

from tests.architecture.source import Finding, Module

_BARE = (
    (re.compile(r"#\s*(ruff:\s*)?noqa\b(?!:\s*[A-Z]+[0-9]+)", re.IGNORECASE), "say which: `noqa: CODE`"),
    (re.compile(r"#\s*type:\s*ignore\b(?!\[[a-z])"), "say which: `type: ignore[code]`"),
    (re.compile(r"#\s*mypy:\s*ignore-errors\b"), "never a whole file: `type: ignore[code]` on the line"),
)


def check(module: Module) -> Iterator[Finding]:
    if not any(pattern.search(module.text) for pattern, _ in _BARE):
        return  # most modules, which need no tokens
    for token in tokenize.generate_tokens(StringIO(module.text).readline):
        if token.type == tokenize.COMMENT:
            for pattern, instead in _BARE:
                if pattern.search(token.string):
                    yield Finding(token.start[0], f"silences every check there is; {instead}")
