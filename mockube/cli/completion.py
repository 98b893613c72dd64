"""`mockube completion SHELL`: print the completion script for a shell."""

import argparse
import os
from pathlib import Path
from typing import Final

from mockube.failure import UsageError

from .parsing import CommandParser

SHELLS: Final = ("bash", "zsh", "fish", "tcsh", "powershell")


def add_flags(parser: CommandParser) -> None:
    parser.epilog = 'In bash: eval "$(mockube completion bash)"'
    parser.add_argument("shell", nargs="?", choices=SHELLS, help=f"{', '.join(SHELLS)} (the shell of $SHELL)")


def run(options: argparse.Namespace) -> int:
    import shtab  # noqa: PLC0415 - only this command needs it

    from .main import parser  # noqa: PLC0415 - it imports every command, including this one

    shell = options.shell or Path(os.environ.get("SHELL", "")).name
    if shell not in SHELLS:
        raise UsageError(f"unknown shell: name one of {', '.join(SHELLS)}")
    print(shtab.complete(parser(), shell))
    return 0
