"""Judgement 9: is the state after an upgrade from the version before that of a new installation?"""

from mockube.apimachinery.status import ApiError
from mockube.history.field_values import changes_of
from mockube.objects.errors import KindNotServed

from .context import Context, NotApplicable, about
from .findings import Judgement, Level
from .reference import lines_of
from .trial_cluster import TrialCluster


def judge(context: Context, judgement: Judgement) -> None:
    setup = context.setup
    previous = setup.previous
    if previous is None:
        raise NotApplicable(
            "no version before: --previous names its manifests, and --previous-command its program"
        )
    context.require_reference()
    judgement.did += [
        "Installed the version before, created the custom resource, waited until it was quiet, and stopped the operator.",
        "Applied the manifests of the new version, started it, and compared with a new installation of it.",
    ]
    judgement.by_hand = [
        "# instead of the set-up: its first two commands, then the version before",
        *(f"kubectl apply -f {name}" for name in previous.names),
        f"{' '.join(previous.command)} &",
        *context.by_hand("kill $!", "# then the other commands of the set-up"),
    ]
    with context.trial(release=previous) as trial:
        trial.create_others()
        instance = trial.start_and_settle()
        begin = setup.clock.now()
        try:
            trial.create_resource()
        except (ApiError, KindNotServed) as error:
            raise NotApplicable(f"the version before refuses the sample: {error}") from error
        has_settled = trial.settle_after_write(begin)
        judgement.figures["version before settled"] = "yes" if has_settled else "no"
        instance.stop()
        before = trial.resource()
        _upgrade(context, judgement, trial)
        lost = [
            str(each) for each in changes_of(before.get("spec") or {}, trial.resource().get("spec") or {})
        ]
        if lost:
            judgement.add(
                "upgrade-loses-fields",
                Level.ERROR,
                about(before),
                "has another spec after the upgrade",
                details=lost[:8],
            )


def _upgrade(context: Context, judgement: Judgement, trial: TrialCluster) -> None:
    setup = context.setup
    trial.refused.clear()
    trial.use(setup.release)
    trial.install()
    for tree, problem in trial.refused:
        judgement.add("upgrade-refused", Level.ERROR, about(tree), f"is refused: {problem}")
    begin, earlier = setup.clock.monotonic(), len(trial.changes())
    trial.start_and_settle()  # before it has done anything, the state may be the expected one already
    took = context.wait_for_state(trial)
    generations = {
        f"{each['object']['kind']} {each['object']['name']}"
        for each in trial.changes()[earlier:]
        if any(str(part.get("path", "")).startswith("/spec/template") for part in each.get("patch", ()))
        and each["type"] == "MODIFIED"
    }
    judgement.figures["pods restarted of"] = ", ".join(sorted(generations)) or "nothing"
    if took is None:
        judgement.add(
            "upgrade-differs",
            Level.ERROR,
            about(setup.sample.resource),
            f"is in another state {setup.timeout:g} s after the upgrade than after a new installation",
            details=[*lines_of(context.expected.differences(trial))],
        )
    else:
        judgement.figures["upgraded in"] = f"{setup.clock.monotonic() - begin:.1f} s"
