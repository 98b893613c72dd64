"""The Go command of this machine, and programs built with it."""

import contextlib
import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

LOCK = Path(sys.prefix) / "go-builds.lock"
NO_GO = "no Go on this machine"
NO_MODULES = "no Go modules on this machine, and no way to download them"
USUAL_PLACE = "/usr/local/go/bin/go"

_UNREACHABLE = ("dial tcp", "proxyconnect", "module lookup disabled")
"""Go's error messages when it cannot download."""

BUILD_SECONDS = 900
"""The first build compiles the libraries too; Go's own cache keeps them for the next."""

NOT_OPTIMIZED = "-gcflags=all=-N -l -dwarf=false"
"""The compiler takes two thirds of the time. All builds have the same flags, because they share the compiled libraries by them."""


def build(source, target, package=".", module="go.mod"):
    """Build a program that the module of a folder has or names; `module` is another file with its dependencies."""
    return _go(source, target, "build", f"-modfile={module}", package)


def build_test(source, target):
    """Build the tests of a folder into a program."""
    return _go(source, target, "test", "-c")


def go_command():
    """Return the path of the Go command; skip the test if there is none."""
    go = shutil.which("go") or shutil.which(USUAL_PLACE)
    if go is None:
        pytest.skip(NO_GO)
    return go


@contextlib.contextmanager
def _one_at_a_time():
    """Build while no other worker does: a build has all processors, and two would compile the same libraries twice."""
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _go(source, target, *arguments):
    """Skip the test, with the reason, where it cannot run at all."""
    command, *rest = arguments
    with _one_at_a_time():
        built = subprocess.run(
            [go_command(), command, "-mod=readonly", NOT_OPTIMIZED, "-ldflags=-s -w", "-o", target, *rest],
            cwd=source,
            capture_output=True,
            text=True,
            timeout=BUILD_SECONDS,
            check=False,
        )
    if any(words in built.stderr for words in _UNREACHABLE):
        pytest.skip(NO_MODULES)
    assert built.returncode == 0, built.stderr
    return target
