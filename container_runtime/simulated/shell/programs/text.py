"""`echo`."""

import re
from collections import deque
from collections.abc import Mapping
from typing import Final

from mockube.container_runtime.simulated.shell.process import Process, Program, Run, write_text

from . import printf


def echo(process: Process) -> Run:
    arguments = deque(process.arguments)
    newline, escapes = "\n", False
    while arguments and re.fullmatch(r"-[neE]+", arguments[0]):
        option = arguments.popleft()
        newline = "" if "n" in option else newline
        escapes = "e" in option or (escapes and "E" not in option)
    text = " ".join(arguments)
    if escapes:
        text, stop, _ = text.partition("\\c")
        text, newline = printf.unescape(text, octal_needs_zero=True), "" if stop else newline
    yield write_text(text + newline)
    return 0


PROGRAMS: Final[Mapping[str, Program]] = {"echo": echo, "printf": printf.printf}
