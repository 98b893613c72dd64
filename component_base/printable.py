"""Text of manifests, servers and clients on one line of a terminal or a log: it must not start a line, control the terminal, or
be a command to the system that runs a job.

GitHub's runner reads `::error::text` at the start of a line, and `##[error]text` anywhere; Azure's agent `##vso[...]text`.
"""

import re
from typing import Final

_COMMAND: Final = re.compile(r"^\s*:(?=:[A-Za-z])|#(?=#\w*\[)")


def printable(text: str) -> str:
    """Return a text with escapes for what is not printable, such as a line break, and a backslash inside the mark of a command."""
    if not text.isprintable():
        text = "".join(
            character if character.isprintable() else character.encode("unicode_escape").decode()
            for character in text
        )
    return _COMMAND.sub(r"\g<0>\\", text) if "::" in text or "##" in text else text
