"""Commands that the program runs, and its messages: progress is written to stderr."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


class SetupFailed(Exception):
    """The project cannot be started on this machine; the message gives the reason."""


def report(message: str) -> None:
    print(f"compose-test: {message}", file=sys.stderr, flush=True)


def run(*command: str | Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a command and return its output; raise SetupFailed with its last line if it fails."""
    words = [str(word) for word in command]
    completed = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if completed.returncode != 0:
        last = (completed.stderr.strip() or completed.stdout.strip() or "no output").splitlines()[-1]
        raise SetupFailed(f"{' '.join(words[:4])} failed: {last}")
    return completed.stdout
