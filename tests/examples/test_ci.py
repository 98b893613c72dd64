"""The CI workflow's last step runs a command of the example's page, which tests/docs runs."""

import yaml

from tools.packages import ROOT

EXAMPLE = ROOT / "examples/ci"


def test_workflow_ends_with_command_of_page():
    steps = yaml.safe_load((EXAMPLE / "workflow.yaml").read_text())["jobs"]["check"]["steps"]
    assert f"\n$ {steps[-1]['run']}\n" in (EXAMPLE / "README.md").read_text()
