"""mypy and pyright accept a program that uses the Python API, and refuse its mistakes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest

from tests.support.processes.downloads import FETCH_SECONDS, fetch
from tools.packages import ROOT

PROGRAM = ROOT / "tests/clients/typed_program.py"
PYRIGHT = "pyright@1.1.414"
PYRIGHT_SETTINGS = {"typeCheckingMode": "strict", "reportUnnecessaryTypeIgnoreComment": "error"}
CHECK_SECONDS = 240
"""mypy checks the whole package if `make types` has not cached it."""

pytestmark = pytest.mark.timeout(FETCH_SECONDS + CHECK_SECONDS + 30)


@pytest.fixture
def folder(tmp_path):
    """A folder of a user with the program, outside of the repository and its settings."""
    shutil.copy(PROGRAM, tmp_path)
    return tmp_path


def check(folder, *command):
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**os.environ, "MYPY_CACHE_DIR": str(Path(sys.prefix, "cache", "mypy"))},
        capture_output=True,
        text=True,
        check=False,
        timeout=CHECK_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.release
def test_mypy_accepts_program(folder):
    check(folder, sys.executable, "-m", "mypy", "--strict", PROGRAM.name)


@pytest.mark.release
def test_pyright_accepts_program(folder):
    (folder / "pyrightconfig.json").write_bytes(orjson.dumps(PYRIGHT_SETTINGS))
    fetch(folder, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", PYRIGHT)
    check(folder, folder / "node_modules/.bin/pyright", "--pythonpath", sys.executable, "-p", ".")
