"""The JavaScript and Java examples pass with the official clients, which npm and Maven download."""

import shutil
import subprocess
import sys

import pytest

from tests.support.processes.downloads import FETCH_SECONDS, fetch
from tools.packages import ROOT

RUN_SECONDS = 240

pytestmark = pytest.mark.timeout(FETCH_SECONDS + RUN_SECONDS + 30)


def copy_example(name, tmp_path):
    """Copy an example, because its dependencies are installed in its folder."""
    return shutil.copytree(ROOT / "examples" / name, tmp_path / name)


def run_with_cluster(folder, *command):
    done = subprocess.run(
        [sys.executable, "-m", "mockube", "run", "--", *command],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=RUN_SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.release
def test_javascript_example_passes(tmp_path):
    folder = copy_example("javascript", tmp_path)
    fetch(folder, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
    output = run_with_cluster(folder, "npm", "test")
    assert "# pass 3" in output
    assert "# fail 0" in output


@pytest.mark.release
def test_java_example_passes(tmp_path):
    folder = copy_example("java", tmp_path)
    fetch(folder, "mvn", "-q", "-B", "-ntp", "test-compile")
    output = run_with_cluster(folder, "mvn", "-B", "-ntp", "surefire:test")
    assert "Tests run: 3, Failures: 0, Errors: 0, Skipped: 0" in output
