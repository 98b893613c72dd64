"""Why a Job does not end, or has failed, and why a CronJob starts no Job."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.component_base.counted import counted

from .assumptions import assumed_evidence, assumed_remedies, assumed_text
from .explanation import Evidence, Explanation, Origin, Remedy, no_problem, unknown, writes_question
from .facts import EVENTS, Facts
from .members import MAX_EXPLAINED, Members, related_of
from .owners import JOBS
from .pods import explain_pod
from .records import condition_evidence, event_evidence, find_events, true_condition
from .refusals import refusal_of
from .remedies import MERGE, deleted, patched

_BY_FAILED_PODS: Final = (
    "BackoffLimitExceeded",
    "MaxFailedIndexesExceeded",
    "FailedIndexes",
    "PodFailurePolicy",
)
"""The reasons of a failure that the end of the last pods explains."""


def _counts(job: ReadOnlyTree) -> Evidence:
    status = job.get("status") or {}
    text = ", ".join(
        f"{field} {status.get(field) or 0}" for field in ("active", "ready", "succeeded", "failed")
    )
    return Evidence(text=text, source="status")


def explain_job(job: ReadOnlyTree, facts: Facts) -> Explanation:
    if complete := true_condition(job, "Complete"):
        return _complete(job, complete, facts)
    if failed := true_condition(job, "Failed"):
        return _failed(job, failed, facts)
    if "managedBy" in job["spec"] and job["spec"]["managedBy"] != "kubernetes.io/job-controller":
        return unknown(f"the Job is left to another controller, {job['spec']['managedBy']}", _counts(job))
    if ending := _ending(job):
        return ending
    if job["spec"].get("suspend"):
        return Explanation(
            cause="the Job is suspended: it has no pods",
            evidence=[Evidence(text="spec.suspend is true", source="spec.suspend"), _counts(job)],
            remedies=[patched("Resume it:", job, {"spec": {"suspend": False}})],
            origins=[Origin.of(job, "spec", "suspend")],
        )
    return _running(job, facts)


def _complete(job: ReadOnlyTree, complete: ReadOnlyTree, facts: Facts) -> Explanation:
    pods = Members(job, facts).ended
    return Explanation(
        state="NoProblem",
        cause=f"the Job is complete{assumed_text(pods)}",
        evidence=[condition_evidence(complete), *[*assumed_evidence(pods)][:MAX_EXPLAINED]],
        remedies=[*assumed_remedies(pods)],
    )


def _ending(job: ReadOnlyTree) -> Explanation | None:
    """Explain a Job that has its outcome, and waits for the end of its pods."""
    if target := true_condition(job, "FailureTarget"):
        return Explanation(
            cause=f"the Job fails when its pods have ended, {target.get('reason')}: {target.get('message')}",
            evidence=[condition_evidence(target), _counts(job)],
        )
    if met := true_condition(job, "SuccessCriteriaMet"):
        return no_problem(
            "the Job is complete when its pods have ended", condition_evidence(met), _counts(job)
        )
    return None


def _failed(job: ReadOnlyTree, failed: ReadOnlyTree, facts: Facts) -> Explanation:
    reason, message = failed.get("reason"), failed.get("message") or ""
    pods = [*Members(job, facts).failed[-2:]] if reason in _BY_FAILED_PODS else []
    explained = [(pod, explain_pod(pod, facts)) for pod in pods]
    if reason in _BY_FAILED_PODS and not pods and (evicted := _evicted(job, facts)):
        return replace(
            evicted,
            cause=f"the Job has failed, {reason}: {message}: {evicted.cause}",
            evidence=[condition_evidence(failed), _counts(job), *evicted.evidence],
        )
    last = f": {explained[-1][1].cause}" if explained else ""
    rule = _RULES.get(reason or "")
    if reason == "DeadlineExceeded" and (stopped := _never_ran(job, facts)):
        return replace(
            stopped,
            cause=f"the Job has failed, {reason}: {message}: {stopped.cause}",
            evidence=[condition_evidence(failed), *stopped.evidence],
            remedies=[
                Remedy(
                    text=f"A Job that has ended does not start again: make one that replaces {meta.name(job)}."
                ),
                *(
                    each
                    for each in stopped.remedies
                    if each.request is None or each.request.name != meta.name(job)
                ),
            ],
        )
    return Explanation(
        cause=f"the Job has failed, {reason}: {message}{last}",
        evidence=[
            condition_evidence(failed),
            _counts(job),
            *(each for _, found in explained[-1:] for each in found.evidence),
        ],
        remedies=[
            *(each for _, found in explained[-1:] for each in found.remedies),
            *([] if rule is None else [_changed(job, rule)]),
        ],
        origins=[
            *(each for _, found in explained[-1:] for each in found.origins),
            *([] if rule is None else [_rule_origin(job, rule)]),
        ],
        related=related_of(explained),
    )


def _never_ran(job: ReadOnlyTree, facts: Facts) -> Explanation | None:
    """Explain a Job in whose time no pod ran: it may have none, the server refused them, or the last one waited until its end."""
    if not job["spec"].get("parallelism", 1):
        return _without_parallelism(job)
    if refused := Members(job, facts).creation_failure(1):
        return refused
    created = find_events(job, facts, ("SuccessfulCreate",), limit=1)
    name = created[0].text.removeprefix("Created pod: ") if created else ""
    waited = [
        event
        for event in facts.list(EVENTS, meta.namespace(job))
        if (event.get("involvedObject") or {}).get("name") == name and event.get("reason") in _WAITED
    ]
    if not waited:
        return None
    last = event_evidence(max(waited, key=_message_length))  # Others repeat a part of it.
    return Explanation(
        cause=f"its pod {name} had not run: {last.text}",
        evidence=[last, _counts(job)],
        remedies=[Remedy(text=f"Correct the template, in a Job that replaces {meta.name(job)}.")],
        origins=[Origin.of(job, "spec", "template")],
    )


def _message_length(event: ReadOnlyTree) -> int:
    return len(event.get("message") or "")


_WAITED: Final = ("FailedScheduling", "Failed", "FailedMount", "FailedCreatePodSandBox")
"""The reasons of Events about pods whose containers do not start."""


class _Rule(NamedTuple):
    """What makes a Job fail whatever its program does: a field, and what would let it go on."""

    field: str
    text: str


_RULES: Final[Mapping[str, _Rule]] = {
    "DeadlineExceeded": _Rule("activeDeadlineSeconds", "Give it more time"),
    "PodFailurePolicy": _Rule(
        "podFailurePolicy", "Change the rule that failed it, or the exit code of the program"
    ),
}


def _rule_origin(job: ReadOnlyTree, rule: _Rule) -> Origin:
    """Return the field with the rule: that of the CronJob that makes the Job, if one does."""
    owner = meta.controller_of(job)
    if owner is None:
        return Origin.of(job, "spec", rule.field)
    namespace, api_version = meta.namespace(job), owner["apiVersion"]
    path = ("spec", "jobTemplate", "spec", rule.field)
    return Origin.named(api_version, owner["kind"], namespace, owner["name"], *path)


def _changed(job: ReadOnlyTree, rule: _Rule) -> Remedy:
    """Return the change of a rule: a Job that has ended does not start again."""
    owner, seconds = meta.controller_of(job), job["spec"].get("activeDeadlineSeconds")
    if owner is None or rule.field != "activeDeadlineSeconds" or not seconds:
        return Remedy(text=f"{rule.text}: spec.{rule.field}, in a Job that replaces {meta.name(job)}.")
    head = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "metadata": {"name": owner["name"], "namespace": meta.namespace(job)},
    }
    patch = {"spec": {"jobTemplate": {"spec": {rule.field: 2 * seconds}}}}
    return patched(f"{rule.text} in the next Jobs:", head, patch, media_type=MERGE)


def _evicted(job: ReadOnlyTree, facts: Facts) -> Explanation | None:
    """Explain the end of pods that are gone, if the newest one was evicted, as by the drain of a node."""
    for event in find_events(job, facts, ("SuccessfulCreate",), limit=MAX_EXPLAINED):
        name = event.text.removeprefix("Created pod: ")
        origin = Origin.named("v1", "Pod", meta.namespace(job), name)
        for write in facts.writes_of(writes_question(origin)):
            author = write.get("author") or {}
            if author.get("subresource") == "eviction":
                program = author.get("agent", "").partition(" ")[0]
                return Explanation(
                    cause=f"the pod {name} was evicted by {author.get('user')} with {program}, as the drain of a node does, and a pod that is evicted counts as failed",
                    evidence=[event],
                    remedies=[
                        Remedy(
                            text="Let disruptions not count: spec.podFailurePolicy with action Ignore for the condition DisruptionTarget, in a Job that replaces it."
                        )
                    ],
                    origins=[origin, Origin.of(job, "spec", "backoffLimit")],
                )
    return None


def _running(job: ReadOnlyTree, facts: Facts) -> Explanation:
    members, status = Members(job, facts), job.get("status") or {}
    if not members.is_readable:
        return unknown("the Job cannot be explained without the right to list its pods", _counts(job))
    if not members.pods:
        return _without_pods(job, members, facts)
    failures = status.get("failed") or 0
    if members.unready:
        found = members.explain_pods(members.unready, len(members.pods))
    else:
        found = no_problem(
            f"{counted(len(members.pods), 'pod runs', 'pods run')}, and {counted(failures, 'has', 'have')} failed before",
            _counts(job),
        )
    evicted = _evicted(job, facts) if members.ending else None
    if evicted is None:
        return found
    return replace(
        found,
        cause=f"{found.cause}; {evicted.cause}",
        origins=[*found.origins, *evicted.origins],
        remedies=[*found.remedies, *evicted.remedies],
    )


def _without_pods(job: ReadOnlyTree, members: Members, facts: Facts) -> Explanation:
    parallelism = job["spec"].get("parallelism", 1)
    if not parallelism:
        return _without_parallelism(job)
    return members.creation_failure(parallelism) or _between_pods(job, members, facts)


def _without_parallelism(job: ReadOnlyTree) -> Explanation:
    return Explanation(
        cause="the Job has no pods, because spec.parallelism is 0",
        evidence=[Evidence(text="spec.parallelism is 0", source="spec.parallelism"), _counts(job)],
        remedies=[patched("Let it run:", job, {"spec": {"parallelism": 1}})],
        origins=[Origin.of(job, "spec", "parallelism")],
    )


def _between_pods(job: ReadOnlyTree, members: Members, facts: Facts) -> Explanation:
    if not members.failed:
        return _evicted(job, facts) or unknown(
            "the Job has no pods, and no failure is recorded", _counts(job)
        )
    last = members.failed[-1]
    found = explain_pod(last, facts)
    return Explanation(
        state=found.state,
        cause=f"the Job waits for its next attempt{_failures(job)}: {found.cause}",
        evidence=[_counts(job), *found.evidence],
        remedies=found.remedies,
        origins=found.origins,
        related=related_of([(last, found)]),
    )


def _failures(job: ReadOnlyTree) -> str:
    """Return how many pods have failed, with the limit only where it counts exactly those."""
    spec, count = job["spec"], (job.get("status") or {}).get("failed") or 0
    has_other_limits = any(
        spec.get(field) is not None for field in ("podFailurePolicy", "backoffLimitPerIndex")
    )
    if has_other_limits or spec["template"]["spec"].get("restartPolicy") == "OnFailure":
        return f", {counted(count, 'pod has', 'pods have')} failed" if count else ""
    return f", {counted(count, 'has', 'have')} failed of at most {spec.get('backoffLimit', 6)} that may"


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
            remedies=[patched("Resume it:", cron_job, {"spec": {"suspend": False}})],
            origins=[Origin.of(cron_job, "spec", "suspend")],
        )
    if not facts.may_read_events(cron_job):
        return unknown("whether a start has failed is not known without the right to list Events", *evidence)
    started = _last_start(cron_job, facts)

    def since_start(*reasons: str) -> Sequence[Evidence]:
        return [each for each in find_events(cron_job, facts, reasons) if each.time > started]

    if refused := since_start("FailedCreate"):
        refusal = refusal_of(refused[0].text, meta.namespace(cron_job))
        return Explanation(
            cause=f"no Job is started: {refusal.text}",
            evidence=[*refused, *evidence],
            remedies=refusal.remedies,
            origins=refusal.origins,
        )
    problems = since_start("UnparseableSchedule", "UnknownTimeZone", "InvalidSchedule")
    if problems:
        return _without_times(cron_job, [*problems, *evidence])
    active = _active_jobs(cron_job, facts)
    waiting = since_start("JobAlreadyActive")
    if active and waiting and spec.get("concurrencyPolicy") == "Forbid":
        return _forbidden(cron_job, active, [*waiting, *evidence], facts)
    missed = since_start("MissSchedule")
    if missed:
        return Explanation(
            cause=f"the deadline of a start has passed: startingDeadlineSeconds is {spec.get('startingDeadlineSeconds')}",
            evidence=[*missed, *evidence],
            remedies=[
                patched(
                    "Let a start be as late as it is:",
                    cron_job,
                    {"spec": {"startingDeadlineSeconds": None}},
                    media_type=MERGE,
                )
            ],
            origins=[Origin.of(cron_job, "spec", "startingDeadlineSeconds")],
        )
    if failed := _failed_last(cron_job, facts):
        return replace(failed, evidence=[*failed.evidence, *evidence])
    warnings = since_start("TooManyMissedTimes")
    return no_problem("no problem is recorded: it starts Jobs by its schedule", *evidence, *warnings)


def _without_times(cron_job: ReadOnlyTree, evidence: Sequence[Evidence]) -> Explanation:
    """Explain a CronJob whose schedule names no time that comes, or is not understood."""
    zone, schedule = cron_job["spec"].get("timeZone"), cron_job["spec"]["schedule"]
    if "UnknownTimeZone" in evidence[0].source:
        return Explanation(
            cause=f"no Job is started: its time zone {zone} is not known",
            evidence=evidence,
            remedies=[patched("Take one that is known:", cron_job, {"spec": {"timeZone": "Etc/UTC"}})],
            origins=[Origin.of(cron_job, "spec", "timeZone")],
        )
    problem = "names no time that comes" if "InvalidSchedule" in evidence[0].source else "is not understood"
    return Explanation(
        cause=f"no Job is started: the schedule {schedule} {problem}",
        evidence=evidence,
        remedies=[
            patched(
                "Give it a schedule that names one, such as each midnight:",
                cron_job,
                {"spec": {"schedule": "0 0 * * *"}},
            )
        ],
        origins=[Origin.of(cron_job, "spec", "schedule")],
    )


def _jobs_of(cron_job: ReadOnlyTree, facts: Facts) -> Sequence[ReadOnlyTree]:
    """Return the Jobs of a CronJob, the oldest first."""
    jobs = facts.list(JOBS, meta.namespace(cron_job))
    return sorted((job for job in jobs if meta.is_controlled_by(job, cron_job)), key=_created)


def _created(job: ReadOnlyTree) -> str:
    return str(meta.metadata(job).get("creationTimestamp") or "")


def _failed_last(cron_job: ReadOnlyTree, facts: Facts) -> Explanation | None:
    """Explain a CronJob whose last Job that has an outcome has failed; None if it has not."""
    ended = [
        job
        for job in _jobs_of(cron_job, facts)
        if true_condition(job, "Failed") or true_condition(job, "Complete")
    ]
    if not ended or not true_condition(ended[-1], "Failed"):
        return None
    found = explain_job(ended[-1], facts)
    return replace(
        found,
        cause=f"it starts Jobs by its schedule, and {meta.name(ended[-1])}, the last one that has ended, has failed: {found.cause}",
        related=related_of([(ended[-1], found)]),
    )


def _last_start(cron_job: ReadOnlyTree, facts: Facts) -> str:
    """Return when its last Job was created; lastScheduleTime is when that should have been."""
    times = [
        *map(_created, _jobs_of(cron_job, facts)),
        *(each.time for each in find_events(cron_job, facts, ("SuccessfulCreate",), limit=1)),
        str((cron_job.get("status") or {}).get("lastScheduleTime") or ""),
    ]
    return max(times)


def _active_jobs(cron_job: ReadOnlyTree, facts: Facts) -> Sequence[ReadOnlyTree]:
    names = {each.get("name") for each in (cron_job.get("status") or {}).get("active") or ()}
    return [job for job in facts.list(JOBS, meta.namespace(cron_job)) if meta.name(job) in names]


def _forbidden(
    cron_job: ReadOnlyTree, active: Sequence[ReadOnlyTree], evidence: Sequence[Evidence], facts: Facts
) -> Explanation:
    found = explain_job(active[0], facts)
    return Explanation(
        cause=f"the Job {meta.name(active[0])} has not ended, and concurrencyPolicy Forbid lets no other one start",
        evidence=[Evidence(text="concurrencyPolicy is Forbid", source="spec.concurrencyPolicy"), *evidence],
        remedies=[
            *found.remedies,
            deleted("End it, so that the next one starts:", active[0]),
            patched("Or let the next one replace it:", cron_job, {"spec": {"concurrencyPolicy": "Replace"}}),
        ],
        origins=[*found.origins, Origin.of(cron_job, "spec", "concurrencyPolicy")],
        related=related_of([(active[0], found)]),
    )
