"""The client-go example passes as with `go test`."""

import subprocess
import sys

import pytest

from tests.support.processes import go_programs
from tools.packages import ROOT

EXAMPLE = ROOT / "examples/client-go"


@pytest.mark.release
@pytest.mark.timeout(go_programs.BUILD_SECONDS + 120)
def test_go_example_passes(tmp_path):
    program = go_programs.build_test(EXAMPLE, tmp_path / "heal.test")
    done = subprocess.run(
        [sys.executable, "-m", "mockube", "run", "--", program, "-test.v"],
        cwd=EXAMPLE,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "--- PASS: TestFailedPodsAreDeletedAndOthersAreNot" in done.stdout
