"""Downloads by the package managers of other languages."""

import shutil
import subprocess

import pytest

FETCH_SECONDS = 240


def fetch(folder, *command):
    """Download the dependencies of a project; skip the test with the reason if that fails."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=FETCH_SECONDS
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"the registry of {command[0]} did not respond in time")
    if done.returncode:
        pytest.skip(f"{command[0]} fetched nothing: {(done.stdout + done.stderr)[-500:]}")
