"""`make compose-test` reports a missing Docker engine in one line and does not fail."""

import shutil
import subprocess
import sys

from tests.support.processes.process import ROOT


def test_missing_container_engine_is_reported(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tools.compose_test", tmp_path / "stock"],
        cwd=ROOT,
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("compose: could not run: no Docker engine answers, and ")
    assert done.stdout.count("\n") == 1
    assert not (tmp_path / "stock").exists()


def test_ci_shows_report_of_missing_engine():
    assert "grep '^compose: '" in (ROOT / ".ci" / "run").read_text()
    bash = shutil.which("bash")
    assert bash, "continuous integration is a script of bash"
    subprocess.run([bash, "-n", ROOT / ".ci" / "run"], check=True)
