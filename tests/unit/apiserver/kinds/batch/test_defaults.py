import pytest

JOB = {
    "parallelism": 1,
    "completions": 1,
    "backoffLimit": 6,
    "manualSelector": False,
    "completionMode": "NonIndexed",
    "suspend": False,
    "podReplacementPolicy": "TerminatingOrFailed",
}


def without(fields, *names):
    return {name: value for name, value in fields.items() if name not in names}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({}, JOB, id="empty"),
        pytest.param({"parallelism": 3}, without(JOB, "completions") | {"parallelism": 3}, id="a work queue"),
        pytest.param({"completions": 5}, JOB | {"completions": 5}, id="a number of completions"),
        pytest.param(
            {"backoffLimitPerIndex": 1},
            JOB | {"backoffLimitPerIndex": 1, "backoffLimit": 2147483647},
            id="a limit for each index",
        ),
        pytest.param(
            {
                "podFailurePolicy": {
                    "rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
                }
            },
            JOB
            | {
                "podReplacementPolicy": "Failed",
                "podFailurePolicy": {
                    "rules": [
                        {
                            "action": "Ignore",
                            "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
                        }
                    ]
                },
            },
            id="a policy for failures",
        ),
        pytest.param(
            {"suspend": True, "backoffLimit": 0}, JOB | {"suspend": True, "backoffLimit": 0}, id="its own"
        ),
    ],
)
def test_job_defaults(with_defaults, given, expected):
    assert without(with_defaults("batch/v1", "Job", {"spec": given})["spec"], "template") == expected


@pytest.mark.parametrize(
    ("metadata", "labels"),
    [
        pytest.param({}, {"a": "b"}, id="those of its pods"),
        pytest.param({"labels": {"c": "d"}}, {"c": "d"}, id="its own"),
    ],
)
def test_job_labels_default_to_template_labels(with_defaults, metadata, labels):
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}
    defaulted = with_defaults("batch/v1", "Job", {"metadata": metadata, "spec": {"template": template}})
    assert defaulted["metadata"]["labels"] == labels


def test_cron_job_defaults(with_defaults):
    """The Job template has no defaults: they are applied when the Job is created."""
    spec = with_defaults("batch/v1", "CronJob", {"spec": {"schedule": "* * * * *"}})["spec"]
    assert without(spec["jobTemplate"]["spec"], "template") == {}
    assert without(spec, "jobTemplate") == {
        "schedule": "* * * * *",
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    }
