"""The CI workflow's last command is one of the example's page, which tests/docs runs."""

import yaml

from tools.packages import ROOT

EXAMPLE = ROOT / "examples/ci"


def test_last_command_of_workflow_is_that_of_page():
    steps = yaml.safe_load((EXAMPLE / "workflow.yaml").read_text())["jobs"]["check"]["steps"]
    command = next(step["run"] for step in reversed(steps) if "run" in step)
    assert f"\n$ {command}\n" in (EXAMPLE / "README.md").read_text()
