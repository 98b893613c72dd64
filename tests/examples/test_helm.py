"""The committed manifests are what helm renders from the chart; tests/docs tests the example's page."""

import subprocess

import pytest

from tests.support.processes import go_programs, helm_binary
from tools.packages import ROOT

EXAMPLE = ROOT / "examples/helm"


@pytest.mark.timeout(go_programs.BUILD_SECONDS + 120)
def test_committed_manifest_is_rendered_by_helm(tmp_path_factory):
    rendered = subprocess.run(
        [helm_binary.helm(tmp_path_factory), "template", "shop", "chart"],
        cwd=EXAMPLE,
        capture_output=True,
        text=True,
        check=True,
    )
    assert rendered.stdout == (EXAMPLE / "rendered.yaml").read_text()
