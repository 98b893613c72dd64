"""The pytest plugin, in a pytest of its own."""

import os
import re
import subprocess
import sys

import pytest

from tests.architecture.source import ROOT

TESTS = """
{shown}
    print("served at", mockube.url)

def test_another(mockube):
    mockube.wait("Node", "node-3", "Ready")
    print("served at", mockube.url)
"""


def shown_in_the_readme():
    (program,) = re.findall(r"```python\n(def test_.*?)\n```", (ROOT / "README.md").read_text(), re.DOTALL)
    return program


@pytest.mark.parametrize(
    ("settings", "clusters"),
    [
        pytest.param([], 2, id="one for each test, unless told otherwise"),
        pytest.param(["-o", "mockube_scope=module"], 1, id="one for a module"),
    ],
)
def test_a_fixture_gives_a_fresh_cluster(tmp_path, settings, clusters):
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["mockube.testing"]\n')
    (tmp_path / "test_mine.py").write_text(TESTS.format(shown=shown_in_the_readme()))
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", "-W", "error", "-p", "no:cacheprovider", *settings],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    served = {line.partition("served at ")[2] for line in answer.stdout.splitlines() if "served at" in line}
    assert len(served) == clusters
