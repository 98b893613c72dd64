"""Defaults of batch: Jobs and CronJobs."""

from typing import Final

from apiserver.defaults.table import FILLED_BY_OWNER, Tree, of, set_labels

_RETRIES: Final = 6
_ENDLESS_RETRIES: Final = 2**31 - 1


def _job(job: Tree) -> None:
    """What is filled in for a Job, but not for a template of Jobs."""
    spec = job["spec"]
    if "parallelism" not in spec:
        spec["parallelism"] = 1
        spec.setdefault("completions", 1)
    # Where each index has its own limit, all of them together have none.
    spec.setdefault("backoffLimit", _ENDLESS_RETRIES if "backoffLimitPerIndex" in spec else _RETRIES)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)
    spec.setdefault("manualSelector", False)
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    labels = spec["template"]["metadata"].get("labels")
    if labels and "labels" not in job["metadata"]:
        set_labels(job["metadata"], labels)


DEFAULTS: Final = of(
    "io.k8s.api.batch.v1",
    {
        "Job": _job,
        "JobSpec": FILLED_BY_OWNER,
        "PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
        "CronJobSpec": {
            "concurrencyPolicy": "Allow",
            "suspend": False,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1,
        },
    },
)
