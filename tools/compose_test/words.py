"""Output of this program: progress goes to stderr, and obstacles are an exception."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path


class Impossible(Exception):
    """The project cannot be brought up here, and why."""


def report(message: str) -> None:
    print(f"compose-test: {message}", file=sys.stderr, flush=True)


def run(*command: str | Path, environment: Mapping[str, str] | None = None) -> str:
    """What the command printed. One that fails makes all of it impossible, and is named."""
    words = [str(word) for word in command]
    completed = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    if completed.returncode != 0:
        last = (completed.stderr.strip() or completed.stdout.strip() or "no word").splitlines()[-1]
        raise Impossible(f"{' '.join(words[:4])} failed: {last}")
    return completed.stdout
