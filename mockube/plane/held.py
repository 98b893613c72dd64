"""Import one of our programs, and run it when told to: what takes long is done while others still make ready.

Run as a module, with the program's name and arguments. A byte on stdin says go; its end says that nobody will.
"""

import importlib
import sys
from collections.abc import Sequence

GO = b"\n"


def held(python: Sequence[str], program: str, arguments: Sequence[str]) -> Sequence[str]:
    """The command that does so."""
    return [*python, "-m", "mockube.plane.held", program, *arguments]


def _main(program: str, arguments: Sequence[str]) -> int:
    main = importlib.import_module(f"{program}.__main__").main
    told = sys.stdin.buffer.read(len(GO))
    return int(main(arguments)) if told else 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1], sys.argv[2:]))
