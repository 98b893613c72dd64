"""The workflow does what the example's page does, which is followed like every page."""

import yaml

from tests.architecture.source import ROOT

EXAMPLE = ROOT / "examples/ci"


def test_workflow_ends_with_command_of_page():
    steps = yaml.safe_load((EXAMPLE / "workflow.yaml").read_text())["jobs"]["check"]["steps"]
    assert f"\n$ {steps[-1]['run']}\n" in (EXAMPLE / "README.md").read_text()
