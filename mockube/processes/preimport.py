"""Import a program of mockube at once, and run it later, so that it is imported while another process starts.

Run as a module, with the program's name and arguments. A byte on stdin runs the program; the end of stdin before that
ends the process. A program has a function `preload` if its arguments decide what else it imports.
"""

import gc
import importlib
import sys
from collections.abc import Sequence

START = b"\n"


def _main(name: str, arguments: Sequence[str]) -> int:
    program = importlib.import_module(f"{name}.__main__")
    if hasattr(program, "preload"):
        program.preload(arguments)
    go_ahead = sys.stdin.buffer.read(len(START))
    return int(program.main(arguments)) if go_ahead else 0


if __name__ == "__main__":
    gc.disable()  # until the program enables it: imported objects are not garbage
    sys.exit(_main(sys.argv[1], sys.argv[2:]))
