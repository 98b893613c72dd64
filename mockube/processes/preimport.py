"""Import a program of mockube at once, and run it later, so that it is imported while another process starts.

Run as a module, with the program's name and arguments. A byte on stdin runs the program; the end of stdin before that
ends the process. A program has a function `preload` if its arguments decide what else it imports.
"""

import gc
import importlib
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

START = b"\n"
NICENESS = 10


def _import(name: str, arguments: Sequence[str]) -> ModuleType:
    if sys.platform == "linux":  # which changes the priority of this thread only, not of the program
        os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    program = importlib.import_module(name)
    if hasattr(program, "preload"):
        program.preload(arguments)
    return program


def _main(program: str, arguments: Sequence[str]) -> int:
    with ThreadPoolExecutor(max_workers=1) as executor:
        main = executor.submit(_import, f"{program}.__main__", arguments).result().main
    go_ahead = sys.stdin.buffer.read(len(START))
    return int(main(arguments)) if go_ahead else 0


if __name__ == "__main__":
    gc.disable()  # until the program enables it: imported objects are not garbage
    sys.exit(_main(sys.argv[1], sys.argv[2:]))
