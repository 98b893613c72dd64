"""Validation of CronJobs, and of changed Jobs."""

import pytest

from tests.support.field_rules import ABSENT, changed, create_errors, update_errors
from tests.support.valid_workloads import CRON_JOB, JOB

SUSPENDED = {"suspend": True}
INDEXED = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
RULE = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "a", "status": "True"}]}]}


def cron_job(fields):
    return changed(CRON_JOB, {f"spec.{path}": value for path, value in fields.items()})


def job(fields):
    return changed(
        JOB, {path if path.startswith("status") else f"spec.{path}": value for path, value in fields.items()}
    )


def errors_of(change):
    return create_errors("batch/v1", "CronJob", cron_job(change))


def job_errors(old, new):
    """Return the beginnings of the errors: some contain a whole pod."""
    texts = update_errors("batch/v1", "Job", job(old), job(new))
    return [text if len(text) < 200 else f"{text[:60]} ... {text[-30:]}" for text in texts]


CRON_JOBS = [
    pytest.param({}, [], id="no change"),
    pytest.param({"schedule": ""}, ["spec.schedule: Required value"], id="no schedule"),
    pytest.param({"schedule": "* * * *"},
        ['spec.schedule: Invalid value: "* * * *": expected exactly 5 fields, found 4: [* * * *]'],
        id="invalid schedule"),
    pytest.param({"schedule": "60 * * * *"},
        ['spec.schedule: Invalid value: "60 * * * *": end of range (60) above maximum (59): 60'], id="minute too high"),
    pytest.param({"schedule": "@hourly"}, [], id="macro"),
    pytest.param({"schedule": "@often"},
        ['spec.schedule: Invalid value: "@often": unrecognized descriptor: @often'], id="unknown macro"),
    pytest.param({"schedule": "TZ=UTC * * * * *"},
        [('spec.schedule: Invalid value: "TZ=UTC * * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone '
          "field instead")], id="schedule with time zone"),
    pytest.param({"schedule": "CRON_TZ=UTC * * * * *"},
        [('spec.schedule: Invalid value: "CRON_TZ=UTC * * * * *": cannot use TZ or CRON_TZ in schedule, use '
          "timeZone field instead")], id="schedule with time zone of cron"),
    pytest.param({"timeZone": "Europe/Berlin"}, [], id="time zone"),
    pytest.param({"timeZone": ""},
        ['spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string'], id="empty time zone"),
    pytest.param({"timeZone": "Europe/Nowhere"},
        ['spec.timeZone: Invalid value: "Europe/Nowhere": unknown time zone Europe/Nowhere'], id="unknown time zone"),
    pytest.param({"timeZone": "a b"},
        ['spec.timeZone: Invalid value: "a b": unknown time zone a b'], id="invalid time zone"),
    pytest.param({"timeZone": "../UTC"},
        ['spec.timeZone: Invalid value: "../UTC": unknown time zone ../UTC'], id="time zone above"),
    pytest.param({"timeZone": "a" * 15},
        ['spec.timeZone: Invalid value: "aaaaaaaaaaaaaaa": unknown time zone aaaaaaaaaaaaaaa'],
        id="part of a time zone with 15 characters"),
    pytest.param({"timeZone": "Local"},
        [('spec.timeZone: Invalid value: "Local": timeZone must be an explicit time zone as defined in '
          "https://www.iana.org/time-zones")], id="local time zone"),
    pytest.param({"startingDeadlineSeconds": -1},
        ["spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0"], id="negative deadline"),
    pytest.param({"startingDeadlineSeconds": 0}, [], id="deadline zero"),
    pytest.param({"concurrencyPolicy": ""}, ["spec.concurrencyPolicy: Required value"], id="no concurrency policy"),
    pytest.param({"concurrencyPolicy": "Queue"},
        ['spec.concurrencyPolicy: Unsupported value: "Queue": supported values: "Allow", "Forbid", "Replace"'],
        id="unknown concurrency policy"),
    pytest.param({"successfulJobsHistoryLimit": -1, "failedJobsHistoryLimit": -1},
        ["spec.successfulJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0",
         "spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0"],
        id="negative limits of history"),
    pytest.param({"jobTemplate.spec.selector": {"matchLabels": {"a": "b"}}},
        [('spec.jobTemplate.spec.selector: Invalid value: {"matchLabels":{"a":"b"}}: `selector` will be '
          "auto-generated")], id="selector"),
    pytest.param({"jobTemplate.spec.manualSelector": True},
        ['spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: "nil", "false"'],
        id="manual selector"),
    pytest.param({"jobTemplate.spec.template.spec.restartPolicy": "Always"},
        ['spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
        id="pods that always restart"),
    pytest.param({"jobTemplate.spec.parallelism": -1},
        ["spec.jobTemplate.spec.parallelism: Invalid value: -1: must be greater than or equal to 0"],
        id="negative parallelism"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "expected"), CRON_JOBS)
def test_cron_jobs_are_validated(change, expected):
    assert errors_of(change) == expected


CRON_JOB_UPDATES = [
    pytest.param({}, {"schedule": "0 * * * *"}, [], id="schedule"),
    pytest.param({}, {"schedule": "TZ=UTC * * * * *"},
        [('spec.schedule: Invalid value: "TZ=UTC * * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone '
          "field instead")], id="schedule gets a time zone"),
    pytest.param({"schedule": "TZ=UTC * * * * *"}, {"schedule": "TZ=UTC 0 * * * *"},
        [], id="schedule keeps a time zone"),
    pytest.param({"schedule": "TZ=UTC * * * * *"}, {"schedule": "TZ=UTC * * * * *", "timeZone": "UTC"},
        [('spec.schedule: Invalid value: "TZ=UTC * * * * *": cannot use both timeZone field and TZ or CRON_TZ '
          "in schedule")], id="schedule keeps a time zone beside the field"),
    pytest.param({"timeZone": "Europe/Nowhere"}, {"timeZone": "Europe/Nowhere", "suspend": True},
        [], id="time zone stays unknown"),
    pytest.param({"timeZone": "UTC"}, {"timeZone": "Europe/Nowhere"},
        ['spec.timeZone: Invalid value: "Europe/Nowhere": unknown time zone Europe/Nowhere'],
        id="time zone becomes unknown"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), CRON_JOB_UPDATES)
def test_changes_of_cron_jobs_are_validated(old, new, expected):
    assert update_errors("batch/v1", "CronJob", cron_job(old), cron_job(new)) == expected


JOB_UPDATES = [
    pytest.param({}, {"parallelism": 2}, [], id="parallelism"),
    pytest.param({}, {"activeDeadlineSeconds": 1, "backoffLimit": 1, "ttlSecondsAfterFinished": 1, "suspend": True},
        [], id="deadline and limit"),
    pytest.param({}, {"completions": 2},
        ["spec.completions: Invalid value: 2: field is immutable"], id="completions"),
    pytest.param(INDEXED, {**INDEXED, "completions": 4},
        ["spec.completions: Invalid value: 4: can only be modified in tandem with spec.parallelism"],
        id="completions with indexes"),
    pytest.param(INDEXED, {**INDEXED, "completions": 4, "parallelism": 4},
        [], id="completions and parallelism with indexes"),
    pytest.param(INDEXED, {**INDEXED, "completions": ABSENT},
        ["spec.completions: Required value: when completion mode is Indexed"], id="no completions with indexes"),
    pytest.param({}, {"selector": {"matchLabels": {"job-name": "a"}}},
        ['spec.selector: Invalid value: {"matchLabels":{"job-name":"a"}}: field is immutable'], id="selector"),
    pytest.param({}, {"completionMode": "Indexed"},
        ['spec.completionMode: Invalid value: "Indexed": field is immutable'], id="mode"),
    pytest.param({}, {"template.spec.containers.0.image": "b"},
        ['spec.template: Invalid value: {"labels":{"batch.kubernetes.i ... rs":null}}: field is immutable'], id="image"),
    pytest.param({}, {"template.spec.nodeSelector": {"a": "b"}},
        ['spec.template: Invalid value: {"labels":{"batch.kubernetes.i ... rs":null}}: field is immutable'],
        id="selector of nodes"),
    pytest.param({}, {"podFailurePolicy": RULE, "podReplacementPolicy": "Failed"},
        [("spec.podFailurePolicy: Invalid value: "
          '{"Rules":[{"Action":"Ignore","OnExitCodes":null,"OnPodConditions":[{"Type":"a","Status":"True"}]}]}: '
          "field is immutable")], id="failure policy"),
    pytest.param({}, {"managedBy": "a/b"},
        ['spec.managedBy: Invalid value: "a/b": field is immutable'], id="manager"),
    pytest.param(INDEXED, {**INDEXED, "backoffLimitPerIndex": 1},
        ["spec.backoffLimitPerIndex: Invalid value: 1: field is immutable"], id="limit per index"),
    pytest.param(INDEXED, {**INDEXED, "successPolicy": {"rules": [{"succeededCount": 1}]}},
        [('spec.successPolicy: Invalid value: {"Rules":[{"SucceededIndexes":null,"SucceededCount":1}]}: field '
          "is immutable")], id="success policy"),
    pytest.param(SUSPENDED, {**SUSPENDED, "template.spec.nodeSelector": {"a": "b"}, "template.spec.tolerations": [{"operator": "Exists"}], "template.metadata.annotations": {"a": "b"}},
        [], id="selector of nodes of a suspended Job"),
    pytest.param(SUSPENDED, {**SUSPENDED, "template.spec.containers.0.image": "b"},
        ['spec.template.spec: Invalid value: {"Volumes":[{"Name":"empt ... ers":null}: field is immutable'],
        id="image of a suspended Job"),
    pytest.param({**SUSPENDED, "status": {"startTime": "2030-01-01T00:00:00Z"}}, {**SUSPENDED, "template.spec.nodeSelector": {"a": "b"}},
        ['spec.template: Invalid value: {"labels":{"batch.kubernetes.i ... rs":null}}: field is immutable'],
        id="selector of nodes when a Job was started"),
    pytest.param({**SUSPENDED, "status": {"startTime": "2030-01-01T00:00:00Z", "conditions": [{"type": "Suspended", "status": "True"}]}}, {**SUSPENDED, "template.spec.nodeSelector": {"a": "b"}},
        [], id="selector of nodes when a started Job is suspended"),
    pytest.param({**SUSPENDED, "status": {"active": 1}}, {**SUSPENDED, "template.spec.nodeSelector": {"a": "b"}},
        ['spec.template: Invalid value: {"labels":{"batch.kubernetes.i ... rs":null}}: field is immutable'],
        id="selector of nodes when pods are active"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), JOB_UPDATES)
def test_changes_of_jobs_are_validated(old, new, expected):
    assert job_errors(old, new) == expected


def test_name_of_cron_job_is_at_most_52_characters():
    assert create_errors("batch/v1", "CronJob", changed(CRON_JOB, {"metadata.name": "a" * 52})) == []
    assert create_errors("batch/v1", "CronJob", changed(CRON_JOB, {"metadata.name": "a" * 53})) == [
        f'metadata.name: Invalid value: "{"a" * 53}": must be no more than 52 characters'
    ]
