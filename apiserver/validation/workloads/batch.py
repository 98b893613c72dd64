"""The rules of the batch group's kinds."""

from collections.abc import Mapping
from typing import Final

from apimachinery.groups import GroupKind
from apiserver.validation.kind import Validation
from apiserver.validation.workloads.cron_jobs import check_cron_job, check_cron_job_change
from apiserver.validation.workloads.job_changes import check_job_change
from apiserver.validation.workloads.job_status import check_status_change
from apiserver.validation.workloads.jobs import check_new_job

VALIDATIONS: Final[Mapping[GroupKind, Validation]] = {
    GroupKind("batch", "Job"): Validation(
        metadata_first=False,
        create=check_new_job,
        update=check_job_change,
        subresources={"status": check_status_change},
    ),
    GroupKind("batch", "CronJob"): Validation(create=check_cron_job, update=check_cron_job_change),
}
