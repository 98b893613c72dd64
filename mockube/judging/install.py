"""Judgement 1: does the operator install, finish its custom resource, and become quiet?"""

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from mockube.apimachinery.status import ApiError
from mockube.objects.errors import KindNotServed
from mockube.operators.operator_pod import can_have_mounts

from .context import Context, NotApplicable, about
from .findings import Judgement, Level
from .instances import Instance
from .reference import make_reference, written_objects
from .trial_cluster import TrialCluster, is_write_call, resource_of

_FEW_READS_PER_MINUTE = 60
_OF_PODS = ("KUBERNETES_SERVICE_HOST", "/var/run/secrets/kubernetes.io/serviceaccount")


class _Run(Struct, frozen=True, kw_only=True):
    has_settled: bool
    seconds: float
    """How long the operator took to settle."""
    writes: Sequence[str]
    """The resources of its writes for the custom resource."""


def judge(context: Context, judgement: Judgement) -> None:
    setup = context.setup
    judgement.by_hand = context.by_hand(
        f"kubectl get {context.resource} -o yaml",
        f"mockube requests --name=by-hand --user={context.user} --watch   # nothing while nothing happens",
    )
    judgement.did += [
        "Created the objects of the manifests in a new cluster; the operator's workload with no replicas.",
        f"Started the operator {'as ' + context.user if context.user != 'kubernetes-admin' else 'with all rights'}, waited until it was quiet, and created the custom resource.",
        f"Waited until nobody had written for {setup.quiet_seconds:g} s, and watched the operator for {setup.idle_seconds:g} s more.",
        "Did all of it twice, to know which fields are not the same each time.",
    ]
    ends, runs = [], []
    for is_first in (True, False):
        with context.trial() as trial:
            runs.append(_run(context, judgement, trial, is_first=is_first))
            ends.append(written_objects(trial))
        if not runs[-1].has_settled:
            return  # without a state at rest there is nothing to compare with
    context.reference = make_reference(ends, max(each.seconds for each in runs), runs[0].writes)
    varying = context.reference.varying.lines()
    if varying:
        judgement.figures["not the same twice"] = str(len(varying))
        judgement.did.append(f"Not the same twice, and not compared: {'; '.join(varying[:5])}.")


def _run(context: Context, judgement: Judgement, trial: TrialCluster, *, is_first: bool) -> _Run:
    """Run the operator undisturbed."""
    setup, clock = context.setup, context.setup.clock
    if is_first:
        for tree, problem in trial.refused:
            judgement.add("manifest-refused", Level.ERROR, about(tree), f"is refused: {problem}")
    trial.create_others()
    started_at = clock.monotonic()
    instance = trial.start_and_settle()
    trial.wait_for(lambda: bool(trial.calls()) or bool(trial.exits), setup.timeout)
    _add_exit(judgement, trial)
    if not trial.calls():
        if not trial.exits:
            _add_silence(judgement, instance, clock.monotonic() - started_at)
        raise NotApplicable("the operator sent no request")
    created_at, start = clock.now(), clock.monotonic()
    try:
        trial.create_resource()
    except (ApiError, KindNotServed) as error:
        judgement.add("sample-refused", Level.ERROR, about(setup.sample.resource), f"is refused: {error}")
        raise NotApplicable(f"the custom resource is refused: {error}") from error
    has_settled = trial.settle_after_write(created_at)
    _add_exit(judgement, trial)
    seconds = clock.monotonic() - start - (setup.quiet_seconds if has_settled else 0)
    run = _Run(
        has_settled=has_settled,
        seconds=seconds,
        writes=[resource_of(each) for each in trial.writes(created_at)],
    )
    if not has_settled:
        _add_unrest(context, judgement, trial)
    if is_first:
        _add_findings(context, judgement, trial)
        calls, writes = trial.calls(created_at), trial.writes(created_at)
        errors = Counter(each.code for each in calls if each.code is not None and each.code >= 400)
        judgement.figures |= {
            "settled after": f"{seconds:.1f} s",
            "requests": str(len(calls)),
            "writes": str(len(writes)),
            "errors": ", ".join(f"{count}x{code}" for code, count in sorted(errors.items())) or "0",
        }
        if has_settled:
            _watch_idle(context, judgement, trial)
    return run


def _add_exit(judgement: Judgement, trial: TrialCluster) -> None:
    """Add that the operator has ended by itself, once for both runs."""
    if trial.exits and not any(each.rule == "operator-exits" for each in judgement.findings):
        judgement.add(
            "operator-exits",
            Level.ERROR,
            "The operator",
            f"ended with the code {trial.exits[0].code}, although nothing was disturbed{_exit_hint(trial.exits[0].log)}",
            details=trial.exits[0].log.splitlines(),
        )


def _exit_hint(log: str) -> str:
    """Return what the user can do about an operator that looks for the files and variables of a pod."""
    is_for_pods = any(each in log for each in _OF_PODS)
    if not is_for_pods:
        return ""
    reason = "the manifests have no workload of it" if can_have_mounts() else "this machine allows no mounts"
    return f": it looks for the configuration of a pod, and has to read KUBECONFIG here, because {reason}"


def _add_silence(judgement: Judgement, instance: Instance, seconds: float) -> None:
    judgement.add(
        "nothing-done",
        Level.ERROR,
        "The operator",
        f"runs, and sent no request in {seconds:.0f} s: does it read KUBECONFIG?",
        details=instance.last_lines().splitlines(),
    )


def _add_findings(context: Context, judgement: Judgement, trial: TrialCluster) -> None:
    sample = context.setup.sample
    if not any(each.resource == sample.plural for each in trial.calls()):
        judgement.add(
            "nothing-done",
            Level.ERROR,
            about(sample.resource),
            f"was created, and the operator never read {sample.full_name}",
            details=[str(each) for each in trial.calls()[-5:]],
        )
    elif not trial.writes():
        judgement.add(
            "nothing-done",
            Level.WARNING,
            about(sample.resource),
            f"was created, and the operator wrote nothing in {context.setup.reaction_seconds:g} s",
            details=trial.instances[0].last_lines().splitlines(),
        )


def _add_unrest(context: Context, judgement: Judgement, trial: TrialCluster) -> None:
    writes = Counter(_line(each.verb, each.resource, each.name) for each in trial.writes()[-200:])
    judgement.add(
        "never-settles",
        Level.ERROR,
        about(context.setup.sample.resource),
        f"does not come to rest in {context.setup.timeout:g} s; the most frequent of the last writes:",
        details=[f"{count} times {line}" for line, count in writes.most_common(5)],
    )


def _line(verb: str, resource: str, name: str) -> str:
    return f"{verb} {resource} {name}".strip()


def _watch_idle(context: Context, judgement: Judgement, trial: TrialCluster) -> None:
    """Watch what the operator does while nothing changes."""
    setup = context.setup
    since = setup.clock.now()
    before = len(trial.changes())
    trial.pause(setup.idle_seconds)
    calls = trial.calls_for_objects(since)
    writes = [each for each in calls if is_write_call(each)]
    reads = [each for each in calls if each.verb in ("get", "list")]
    changed = len(trial.changes()) - before
    per_minute = 60 / setup.idle_seconds
    judgement.figures["idle writes/min"] = f"{len(writes) * per_minute:.0f}"
    judgement.figures["idle reads/min"] = f"{len(reads) * per_minute:.0f}"
    if len(writes) > 1:
        kinds = Counter(_line(each.verb, each.resource, each.name) for each in writes)
        effect = "which changed nothing" if not changed else f"which made {changed} new versions of objects"
        judgement.add(
            "writes-while-idle",
            Level.WARNING,
            ", ".join(sorted({each.resource for each in writes})),
            f"were written {len(writes)} times in {setup.idle_seconds:g} s while nothing else happened, {effect}",
            details=[f"{count} times {line}" for line, count in kinds.most_common(5)],
        )
    if len(reads) * per_minute > _FEW_READS_PER_MINUTE:
        kinds = Counter(_line(each.verb, each.resource, "") for each in reads)
        judgement.add(
            "reads-while-idle",
            Level.WARNING,
            ", ".join(sorted({each.resource for each in reads if each.resource})),
            f"were read {len(reads)} times in {setup.idle_seconds:g} s while nothing happened: a watch sends changes without requests",
            details=[f"{count} times {line}" for line, count in kinds.most_common(5)],
        )
