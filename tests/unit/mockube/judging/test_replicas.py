"""The judgement replicas: which of two instances writes for the custom resource."""

from pathlib import Path

import pytest

from mockube.judging import replicas
from mockube.judging.findings import Judgement, Level
from mockube.judging.reference import make_reference, own_part
from tests.support.scripted_operator import GROUP, ScriptedContext, ScriptedTrial, scripted_trial

SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "certificate", "namespace": "default"},
}
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "blog", "namespace": "default"}}


def _judge(folder: Path, writers: int, *, fights: bool = False, lock: str = "") -> Judgement:
    """Judge an operator of which each instance writes a Secret at its start, and so many write for the custom resource, or without end."""

    def work(trial: ScriptedTrial) -> None:
        users = (trial.user, f"system:serviceaccount:{trial.account.namespace}:second-instance")
        script = trial.script
        for user in users[: len(trial.instances)]:
            if not script.calls(user=user):
                script.record(user, "list", "websites")
                if lock == "leases":
                    script.record(user, "update", "leases")
                script.record(user, "update", "secrets")
                script.make(user, SECRET)
        is_first = ("ConfigMap", "blog") not in script.objects
        if ("Website", "blog") in script.objects and (is_first or fights):
            for user in users[:writers]:
                script.record(user, "create", "configmaps")
            script.make(trial.user, CONFIG)

    trial = scripted_trial(folder, work)
    if lock == "annotation":
        annotations = {"control-plane.alpha.kubernetes.io/leader": "{}"}
        metadata = {"name": "lock", "namespace": "system", "annotations": annotations}
        trial.script.objects["ConfigMap", "lock"] = {**CONFIG, "metadata": metadata}
    judgement = Judgement(name="replicas", question="?")
    reference = make_reference([[own_part(tree, GROUP) for tree in (SECRET, CONFIG)]] * 2, 1.0)
    replicas.judge(ScriptedContext(setup=trial.setup, reference=reference, trials=[trial]), judgement)
    return judgement


@pytest.mark.parametrize(
    ("writers", "lock", "rules"),
    [
        (1, "leases", []),
        (1, "annotation", []),
        (1, "", ["no-leader"]),
        (2, "", ["two-writers"]),
    ],
)
def test_writes_of_an_instance_at_its_start_are_none_for_the_resource(
    writers: int, lock: str, rules: list[str], tmp_path: Path
) -> None:
    judgement = _judge(tmp_path, writers, lock=lock)
    assert [each.rule for each in judgement.findings] == rules
    assert ("taken over in" in judgement.figures) is (writers == 1)
    assert judgement.figures["writes of the second"] == str(writers - 1)


def test_instances_that_write_without_end_are_an_error(tmp_path: Path) -> None:
    (finding,) = _judge(tmp_path, 2, fights=True).findings
    assert (finding.rule, finding.level) == ("two-writers-fight", Level.ERROR)
