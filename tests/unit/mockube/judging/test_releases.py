"""The judgement releases: which APIs an operator asks for in vain."""

from pathlib import Path

from mockube.judging import releases
from mockube.judging.findings import Level
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


def test_operator_that_asks_for_a_deprecated_api_is_warned(tmp_path: Path) -> None:
    trial = scripted_trial(tmp_path)
    trial.minor = "1.31"
    trial.script.record(
        trial.user, "list", "flowschemas", group="flowcontrol.apiserver.k8s.io", version="v1beta3"
    )
    trial.script.record("somebody", "list", "componentstatuses", version="v1")
    (found,) = releases.deprecated_apis(trial)
    assert (found.rule, found.level) == ("api-deprecated", Level.WARNING)
    assert found.text == "flowcontrol.apiserver.k8s.io/v1beta3 flowschemas"
    assert found.message.endswith("unavailable in v1.32+; use flowcontrol.apiserver.k8s.io/v1 FlowSchema")


def test_api_without_an_end_that_is_deprecated_is_a_note(tmp_path: Path) -> None:
    trial = scripted_trial(tmp_path)
    trial.script.record(trial.user, "get", "endpoints", version="v1")
    trial.script.record(trial.user, "list", "deployments", group="apps", version="v1")
    (found,) = releases.deprecated_apis(trial)
    assert (found.text, found.level) == ("v1 endpoints", Level.NOTE)
