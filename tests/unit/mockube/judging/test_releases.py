"""The judgement releases: which APIs an operator asks for in vain."""

from pathlib import Path

from mockube.judging import releases
from tests.support.scripted_operator import scripted_trial


def test_version_is_not_served_if_only_another_one_of_its_group_answers(tmp_path: Path) -> None:
    trial = scripted_trial(tmp_path)
    for path, code in (
        ("/apis/autoscaling/v2/namespaces/a/horizontalpodautoscalers/b", 404),
        ("/apis/autoscaling/v2beta2", 200),
        ("/apis/apps/v1/namespaces/a/deployments/b?timeout=1s", 404),
        ("/apis/example.com/v1", 404),
        ("/api/v1/namespaces/a/pods/b", 404),
    ):
        trial.script.record(trial.user, "get", "", uri=path, code=code)
    trial.script.record("somebody", "list", "", uri="/apis/apps/v1/deployments", code=200)
    assert releases._not_served(trial) == {"/apis/autoscaling/v2"}
