"""Why a Job does not end, or has failed, and why a CronJob starts no Job."""

from collections.abc import Sequence

from mockube.apimachinery import conditions, meta
from mockube.apimachinery.tree import ReadOnlyTree

from .commands import about
from .explanation import Evidence, Explanation, ObjectName, Related, Remedy, no_problem, unknown
from .facts import Facts
from .members import Members, is_terminal
from .owners import JOBS
from .pods import explain_pod
from .records import condition_evidence, find_events


def _counts(job: ReadOnlyTree) -> Evidence:
    status = job.get("status") or {}
    text = ", ".join(
        f"{field} {status.get(field) or 0}" for field in ("active", "ready", "succeeded", "failed")
    )
    return Evidence(text=text, source="status")


def explain_job(job: ReadOnlyTree, facts: Facts) -> Explanation:
    failed, complete = conditions.get(job, "Failed"), conditions.get(job, "Complete")
    if complete is not None and complete.get("status") == "True":
        return no_problem("the Job is complete", condition_evidence(complete))
    if failed is not None and failed.get("status") == "True":
        return _failed(job, failed, facts)
    if job["spec"].get("suspend"):
        return Explanation(
            cause="the Job is suspended: it has no pods",
            evidence=[Evidence(text="spec.suspend is true", source="spec.suspend"), _counts(job)],
            remedies=[
                Remedy(text="Resume it:", command=about(job, "patch", "-p", '{"spec":{"suspend":false}}'))
            ],
        )
    if "managedBy" in job["spec"] and job["spec"]["managedBy"] != "kubernetes.io/job-controller":
        return unknown(f"the Job is left to another controller, {job['spec']['managedBy']}", _counts(job))
    return _running(job, facts)


def _failed(job: ReadOnlyTree, failed: ReadOnlyTree, facts: Facts) -> Explanation:
    evidence = [condition_evidence(failed), _counts(job)]
    pods = [
        pod for pod in Members(job, facts).pods if is_terminal(pod) and pod["status"]["phase"] == "Failed"
    ]
    explained = [(pod, explain_pod(pod, facts)) for pod in pods[-2:]]
    last = f": {explained[-1][1].cause}" if explained else ""
    return Explanation(
        cause=f"the Job has failed, {failed.get('reason')}: {failed.get('message')}{last}",
        evidence=[*evidence, *(each for _, found in explained[-1:] for each in found.evidence)],
        remedies=[each for _, found in explained[-1:] for each in found.remedies],
        related=[Related(object=ObjectName.of(pod), cause=found.cause) for pod, found in explained],
    )


def _running(job: ReadOnlyTree, facts: Facts) -> Explanation:
    members, status = Members(job, facts), job.get("status") or {}
    if not members.is_readable:
        return unknown("the Job cannot be explained without the right to list its pods", _counts(job))
    active = [pod for pod in members.pods if not is_terminal(pod)]
    if not active:
        return members.creation_failure(job["spec"].get("parallelism") or 1) or _between_pods(
            job, members, facts
        )
    if members.unready:
        return members.explain_pods(members.unready, len(active))
    failures = status.get("failed") or 0
    return no_problem(f"{len(active)} pods run, and {failures} have failed before", _counts(job))


def _between_pods(job: ReadOnlyTree, members: Members, facts: Facts) -> Explanation:
    failed = [pod for pod in members.pods if pod["status"].get("phase") == "Failed"]
    if not failed:
        return unknown("the Job has no pods, and no failure is recorded", _counts(job))
    found = explain_pod(failed[-1], facts)
    limit = job["spec"].get("backoffLimit", 6)
    return Explanation(
        cause=f"the Job waits for its next attempt, {len(failed)} have failed of at most {limit} that may: {found.cause}",
        evidence=[_counts(job), *found.evidence],
        remedies=found.remedies,
        related=[Related(object=ObjectName.of(failed[-1]), cause=found.cause)],
    )


# --- CronJobs


def explain_cron_job(cron_job: ReadOnlyTree, facts: Facts) -> Explanation:
    spec, status = cron_job["spec"], cron_job.get("status") or {}
    last = status.get("lastScheduleTime") or "never"
    evidence = [
        Evidence(text=f"schedule {spec['schedule']}, last started: {last}", source="status.lastScheduleTime")
    ]
    if spec.get("suspend"):
        return Explanation(
            cause="the CronJob is suspended: it starts no Jobs",
            evidence=[Evidence(text="spec.suspend is true", source="spec.suspend"), *evidence],
            remedies=[
                Remedy(
                    text="Resume it:", command=about(cron_job, "patch", "-p", '{"spec":{"suspend":false}}')
                )
            ],
        )
    problems = find_events(
        cron_job,
        facts,
        ("UnparseableSchedule", "UnknownTimeZone", "InvalidSchedule", "FailedCreate", "TooManyMissedTimes"),
    )
    if problems and problems[0].time >= (status.get("lastScheduleTime") or ""):
        return Explanation(cause=f"no Job is started: {problems[0].text}", evidence=[*problems, *evidence])
    active = _active_jobs(cron_job, facts)
    if active and spec.get("concurrencyPolicy") == "Forbid":
        return _forbidden(active, evidence, facts)
    missed = find_events(cron_job, facts, ("MissSchedule",))
    if missed and missed[0].time >= (status.get("lastScheduleTime") or ""):
        return Explanation(
            cause=f"the deadline of a start has passed: startingDeadlineSeconds is {spec.get('startingDeadlineSeconds')}",
            evidence=[*missed, *evidence],
        )
    return no_problem("no problem is recorded: it starts Jobs by its schedule", *evidence)


def _active_jobs(cron_job: ReadOnlyTree, facts: Facts) -> Sequence[ReadOnlyTree]:
    names = {each.get("name") for each in (cron_job.get("status") or {}).get("active") or ()}
    return [job for job in facts.list(JOBS, meta.namespace(cron_job)) if meta.name(job) in names]


def _forbidden(active: Sequence[ReadOnlyTree], evidence: Sequence[Evidence], facts: Facts) -> Explanation:
    found = explain_job(active[0], facts)
    return Explanation(
        cause=f"the Job {meta.name(active[0])} has not ended, and concurrencyPolicy Forbid lets no other one start",
        evidence=[Evidence(text="concurrencyPolicy is Forbid", source="spec.concurrencyPolicy"), *evidence],
        remedies=found.remedies,
        related=[Related(object=ObjectName.of(active[0]), cause=found.cause)],
    )
