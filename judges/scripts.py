"""Runs the scripts of public tasks and pages, with what they start, for a limited time."""

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

TIMED_OUT = 124
"""The exit code of a script that did not end in its time, as that of timeout(1)."""


def run_script(script: str, folder: Path, environment: Mapping[str, str], seconds: float) -> tuple[int, str]:
    """Run a script of bash in a folder; return its exit code and its output."""
    process = subprocess.Popen(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return TIMED_OUT, f"{process.communicate()[0]}\nit does not end within {seconds} s\n"
    return process.returncode, output
