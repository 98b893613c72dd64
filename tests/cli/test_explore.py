import subprocess
import sys

import orjson
import pytest

from tests.support.explored_operators import SCENARIO

EXPLORE = [sys.executable, "-m", "mockube", "explore"]
OPERATOR = (
    'import os; from tests.support.explored_operators import careless; careless(os.environ["KUBECONFIG"])'
)


def explore(*arguments, folder=None):
    return subprocess.run(
        [*EXPLORE, *map(str, arguments)], capture_output=True, text=True, cwd=folder, check=False
    )


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_finding_is_reported_and_replayed(tmp_path):
    without = ["second operator", "delete the resource", "delete an owned object", "edit an owned object"]
    scenario, output = tmp_path / "scenario.yaml", tmp_path / "findings"
    scenario.write_bytes(orjson.dumps({**SCENARIO, "without": without}))
    command = [sys.executable, "-c", OPERATOR]
    flags = ["--plans=20", "--patience=2s", f"--output={output}"]
    done = explore(*flags, scenario, "--", *command)
    assert done.returncode == 1, done.stderr
    assert "finding 1: ConfigMap child-* in default is left over" in done.stdout
    assert f"replay it: mockube explore --replay {output}/finding-1.yaml" in done.stdout
    assert (output / "finding-1.html").stat().st_size < 1_000_000
    assert orjson.loads((output / "findings.json").read_bytes())["findings"][0]["test"] == "test_finding_1.py"
    again = explore("--patience=2s", "--replay", output / "finding-1.yaml")
    assert again.returncode == 1, again.stderr
    assert "ConfigMap child-* in default is left over" in again.stdout
    tested = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", output / "test_finding_1.py"]
    failed = subprocess.run([*map(str, tested)], capture_output=True, text=True, check=False)
    assert failed.returncode == 1, failed.stdout + failed.stderr
    assert "finding 1: ConfigMap child-* in default is left over" in failed.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param([], "no scenario: use `mockube explore SCENARIO -- CMD ...`", id="nothing"),
        pytest.param(["s.yaml"], "no command of an operator", id="no command"),
        pytest.param(["s.yaml", "--", "true"], "s.yaml: No such file or directory", id="no file"),
        pytest.param(
            ["s.yaml", "--plans=3", "--", "true"], "s.yaml: No such file or directory", id="late flag"
        ),
        pytest.param(
            ["--output=/dev/null/x", "s.yaml", "--", "true"],
            "--output: /dev/null: it is no folder",
            id="no folder",
        ),
        pytest.param(["--replay", "f.yaml"], "f.yaml: No such file or directory", id="no finding"),
    ],
)
def test_mistakes_of_the_command_line(arguments, message, tmp_path):
    done = explore(*arguments, folder=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
