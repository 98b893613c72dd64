import argparse

import orjson
import pytest

from mockube.cli import explore
from mockube.exploration.findings import OperatorFinding, read_finding
from mockube.exploration.judgements import OperatorProblem
from mockube.exploration.plans import UNDISTURBED

SCENARIO = {"act": [{"apply": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "site"}}}]}
FINDING = OperatorFinding(
    plan=UNDISTURBED, problems=[OperatorProblem(type="end", text="a stays", key=("a",))], history=[]
)


def test_finding_stays_when_the_exploration_is_interrupted(tmp_path, monkeypatch, capsys):
    async def interrupted(_scenario, _starter, _options, _show_progress, show_finding):
        show_finding(FINDING)
        raise KeyboardInterrupt

    monkeypatch.setattr("mockube.exploration.api.run_exploration", interrupted)
    scenario = tmp_path / "scenario.yaml"
    scenario.write_bytes(orjson.dumps(SCENARIO))
    options = argparse.Namespace(
        scenario=str(scenario),
        command=["--", "true"],
        output=tmp_path,
        replay=None,
        **dict.fromkeys(("budget", "plans", "seed", "jobs", "patience"), 0),
    )
    with pytest.raises(KeyboardInterrupt):
        explore.run(options)
    path = tmp_path / "finding-1.yaml"
    assert read_finding(path).command == ["true"]
    assert str(path) in capsys.readouterr().err
