"""Import a program of mockube at once, and run it later, so that it is imported while another process starts.

Run as a module, with the program's name and arguments. A byte on stdin runs the program; the end of stdin before that
ends the process.
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


def _import(name: str) -> ModuleType:
    if sys.platform == "linux":  # which changes the priority of this thread only, not of the program
        os.setpriority(os.PRIO_PROCESS, 0, NICENESS)
    return importlib.import_module(name)


def _main(program: str, arguments: Sequence[str]) -> int:
    with ThreadPoolExecutor(max_workers=1) as executor:
        main = executor.submit(_import, f"{program}.__main__").result().main
    go_ahead = sys.stdin.buffer.read(len(START))
    return int(main(arguments)) if go_ahead else 0


if __name__ == "__main__":
    gc.disable()  # until the program enables it: imported objects are not garbage
    sys.exit(_main(sys.argv[1], sys.argv[2:]))
