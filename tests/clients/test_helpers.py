"""The helpers for tests in other languages pass their own tests."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.support.documents.pages import File, steps
from tests.support.processes import go_programs
from tests.support.processes.downloads import FETCH_SECONDS, fetch
from tools.packages import ROOT

HELPERS = ROOT / "helpers"
RUN_SECONDS = 240

pytestmark = pytest.mark.timeout(go_programs.BUILD_SECONDS + FETCH_SECONDS + RUN_SECONDS)


@pytest.fixture
def mockube_program(tmp_path):
    """The program that the helpers start."""
    path = tmp_path / "mockube"
    path.write_text(f'#!/bin/sh\nexec {sys.executable} -m mockube "$@"\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def run(mockube_program):
    """Return a function that runs a command in a folder, and returns what it prints."""

    def run(folder, *command):
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, "MOCKUBE": str(mockube_program)},
            capture_output=True,
            text=True,
            check=False,
            timeout=RUN_SECONDS,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture
def lay_out(tmp_path):
    """Return a function that writes the files of a guide into a folder, beside a checkout of this repository."""

    def lay_out(guide):
        folder = tmp_path / "shop"
        folder.mkdir()
        (folder / "mockube").symlink_to(ROOT)
        for step in steps((ROOT / "docs/guides" / guide).read_text()):
            if isinstance(step, File):
                path = folder / step.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(step.text)
        return folder

    return lay_out


@pytest.fixture
def typescript_folder(tmp_path):
    """A copy of the helper, because its tools are installed in its folder."""
    return shutil.copytree(
        HELPERS / "typescript", tmp_path / "typescript", ignore=shutil.ignore_patterns("node_modules")
    )


def require(program):
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")


def test_go_helper_passes_its_tests(run, tmp_path):
    program = go_programs.build_test(HELPERS / "go", tmp_path / "helper.test")
    output = run(tmp_path, program, "-test.v")
    assert "--- PASS: TestFailedTestLogsWhatHappenedSinceItsStart" in output


@pytest.mark.release
def test_go_helper_has_no_findings_of_vet(run):
    run(HELPERS / "go", go_programs.go_command(), "vet", go_programs.NOT_OPTIMIZED, "./...")


@pytest.mark.release
def test_guide_of_go_works(run, lay_out):
    program = go_programs.build_test(folder := lay_out("go.md"), folder / "shop.test")
    assert "--- PASS: TestOpenTriesAgain" in run(folder, program, "-test.v")


@pytest.mark.release
def test_example_of_controller_runtime_passes(run, tmp_path):
    program = go_programs.build_test(ROOT / "examples/controller-runtime", tmp_path / "operator.test")
    assert "--- PASS: TestOperatorIsIdleWhenNothingChanges" in run(tmp_path, program, "-test.v")


@pytest.mark.release
def test_typescript_helper_passes_its_tests(run, typescript_folder):
    require("node")
    output = run(typescript_folder, "node", "--test", "--test-reporter=tap")
    assert re.search(r"^# pass [1-9]", output, re.MULTILINE)
    assert "# fail 0" in output


@pytest.mark.release
def test_typescript_helper_has_right_types(run, typescript_folder):
    fetch(typescript_folder, "npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts")
    run(typescript_folder, "npm", "run", "types")


@pytest.mark.release
def test_guide_of_javascript_works(run, lay_out):
    require("npm")
    folder = lay_out("javascript.md")
    run(folder, "npm", "init", "--yes", "--init-type=module")
    run(folder, "npm", "install", "--offline", "--no-audit", "./mockube/helpers/typescript")
    output = run(folder, "node", "--test", "--test-reporter=tap", "shop.test.js")
    assert "# pass 1" in output


@pytest.mark.release
def test_java_helper_and_its_guide_work(run, lay_out, tmp_path):
    """The test of the guide is among those of the helper: nothing is installed into the local registry of this machine."""
    folder = shutil.copytree(HELPERS / "java", tmp_path / "java", ignore=shutil.ignore_patterns("target"))
    shutil.copytree(lay_out("java.md") / "src", folder / "src", dirs_exist_ok=True)
    fetch(folder, "mvn", "-q", "-B", "-ntp", "test-compile")
    output = run(folder, "mvn", "-B", "-ntp", "surefire:test")
    assert "in shop.ShopTest" in output
    assert re.search(r"Tests run: \d+, Failures: 0, Errors: 0, Skipped: 0\n", output)
