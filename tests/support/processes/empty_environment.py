"""Environments in which nothing is installed, for tests of what a user installs."""

import os
import subprocess
from pathlib import Path

import pytest

UNREACHABLE = (
    "Failed to fetch",
    "error sending request",
    "dns error",
    "Could not connect",
    "NewConnectionError",
    "No matching distribution found",
    "Temporary failure in name resolution",
)
INSTALL_SECONDS = 300
"""How long a command may take: it downloads packages, and creates environments on a machine that runs other tests."""
NETWORK = ("PIP_", "UV_", "SSL_", "HTTP", "http", "NO_PROXY", "no_proxy", "ALL_PROXY", "LANG")
"""The beginnings of the variables that are the same in it."""


def empty_environment(home):
    """Return the variables of a user with a home of its own; only the installers' caches are this user's."""
    caches = Path.home() / ".cache"
    defaults = {"UV_CACHE_DIR": str(caches / "uv"), "PIP_CACHE_DIR": str(caches / "pip")}
    kept = {name: value for name, value in os.environ.items() if name.startswith(NETWORK)}
    return {**defaults, **kept, "HOME": str(home), "PATH": os.defpath}


def run(*command, env, cwd):
    """Return the output of a command that must succeed; skip the test if it cannot reach a package registry."""
    done = subprocess.run(
        [*map(str, command)],
        env=env,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=INSTALL_SECONDS,
    )
    if done.returncode and any(text in done.stderr for text in UNREACHABLE):
        pytest.skip(f"no package registry can be reached: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
