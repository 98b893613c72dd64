"""Judgement 3: does a restart change nothing, and does the operator finish after it what it began before?"""

from collections import Counter
from collections.abc import Iterator, Sequence

from mockube.apimachinery.tree import ReadOnlyTree
from mockube.operators.end_state import NOISE, kind_of
from mockube.operators.process import OperatorEnd
from mockube.operators.writes import WRITES

from .context import Context
from .findings import Judgement, Level
from .reference import lines_of
from .trial_cluster import TrialCluster

_MAX_CRASHES = 4
_HELD_SECONDS = 600.0
_GRACE_SECONDS = 10.0


def judge(context: Context, judgement: Judgement) -> None:
    judgement.by_hand = context.by_hand(
        "kill $!; wait $!; mockube mark before --name=by-hand",
        context.start_command,
        "sleep 10; mockube diff before --name=by-hand",
    )
    with context.running() as trial:
        _restart_at_rest(context, judgement, trial)
    crashes = 0
    for number, (resource, before) in enumerate(crash_points(context.expected.writes), start=1):
        with context.trial() as trial:
            crashes += _crash_at_write(context, judgement, trial, number, resource, before)
    judgement.figures["crashes at writes"] = str(crashes)
    judgement.did.append(
        f"Killed the operator at {crashes} of its first writes for the custom resource, while the server held the"
        " request, started it again, and waited for the undisturbed state."
    )


def _restart_at_rest(context: Context, judgement: Judgement, trial: TrialCluster) -> None:
    clock = context.setup.clock
    (instance,) = trial.instances
    begin = clock.monotonic()
    end = instance.stop(_GRACE_SECONDS)
    judgement.figures |= {"ended after TERM in": f"{clock.monotonic() - begin:.1f} s", "code": str(end.code)}
    _check_end(judgement, end)
    before, since = len(trial.changes()), clock.now()
    instance.restart()
    trial.wait_until_followed(since, trial.account)
    changes = trial.changes()[before:]
    counted = [each for each in changes if kind_of(each["object"]) not in NOISE]
    judgement.figures |= {
        "writes after restart": str(len(trial.writes(since))),
        "changes after restart": str(len(counted)),
    }
    judgement.did += [
        f"Sent SIGTERM to the settled operator, and waited {_GRACE_SECONDS:g} s at most for its end.",
        "Started it again, and counted the versions of objects that it made, without Leases and Events.",
    ]
    kinds = sorted({each["object"]["kind"] for each in counted})
    if counted:
        judgement.add(
            "changes-after-restart",
            Level.WARNING,
            ", ".join(kinds),
            f"were changed {len(counted)} times by a restart, although nothing else had changed",
            details=[_change_line(each) for each in counted[:6]],
        )


def _change_line(change: ReadOnlyTree) -> str:
    about = change["object"]
    paths = ", ".join(str(each.get("path", "")) for each in change.get("patch", ())[:4])
    return f"{change['type']} {about['kind']} {about['name']}: {paths}"


def _check_end(judgement: Judgement, end: OperatorEnd) -> None:
    if end.ignored_term:
        judgement.add(
            "ignores-term",
            Level.WARNING,
            "The operator",
            f"did not end within {_GRACE_SECONDS:g} s of SIGTERM, and was killed: a Lease stays with it until it expires",
        )


def crash_points(writes: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Yield the first undisturbed writes, each as its resource, and how many writes of the same resource are before it.

    A Fault for all writes would also count those of Leases and Events.
    """
    before: Counter[str] = Counter()
    for resource in writes[:_MAX_CRASHES]:
        yield resource, before[resource]
        before[resource] += 1


def _crash_at_write(
    context: Context, judgement: Judgement, trial: TrialCluster, number: int, resource: str, before: int
) -> bool:
    """Kill the operator at one of its writes; return whether it has sent it."""
    trial.create_others()
    instance = trial.start_and_settle()
    fault = trial.cluster.inject(
        delay=_HELD_SECONDS, after=before, times=1, user=trial.user, verb=WRITES, resource=resource
    )
    trial.create_resource()
    limit = context.setup.reaction_seconds + 2 * context.expected.seconds
    if trial.wait_for(lambda: fault.hits > 0, limit) is None:
        fault.stop()
        return False
    write = next((each for each in reversed(trial.writes()) if each.code is None), None)
    instance.kill()
    fault.stop()
    instance.restart()
    if context.wait_for_state(trial) is None:
        request = resource if write is None else f"{write.verb} {resource}"
        judgement.add(
            "not-finished-after-crash",
            Level.ERROR,
            f"After a crash at write {number}",
            f"the operator did not reach the undisturbed state within {context.setup.timeout:g} s; the write was {request}",
            details=[*lines_of(context.expected.differences(trial))],
            by_hand=[
                "# before the custom resource is created:",
                f"mockube fault add crash --name=by-hand --user={context.user} --verbs={','.join(WRITES)} --resource={resource} --skip={before} --times=1 --delay=10m",
                *context.by_hand(
                    f"mockube requests --name=by-hand --user={context.user}   # the write waits"
                ),
                "kill -9 $!; mockube fault remove crash --name=by-hand",
                context.start_command,
            ],
        )
    return True
