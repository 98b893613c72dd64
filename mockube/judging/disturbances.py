"""Judgement 4: does the operator survive a restart of the API server, 429s, errors and slow answers?"""

from collections.abc import Callable

from msgspec import Struct

from .context import Context
from .findings import Judgement, Level
from .reference import lines_of
from .trial_cluster import TrialCluster

_SPAN_SECONDS = 5.0


class RequestDisturbance(Struct, frozen=True, kw_only=True):
    name: str
    did: str
    by_hand: str
    begin: Callable[[TrialCluster], None]


def _cut(trial: TrialCluster) -> None:
    trial.cluster.inject(cut="before", user=trial.user)


def _lose_history(trial: TrialCluster) -> None:
    trial.cluster.inject(status=410, user=trial.user, verb="watch", times=20)


def _too_many(trial: TrialCluster) -> None:
    trial.cluster.inject(status=429, retry_after=1, user=trial.user)


def _unavailable(trial: TrialCluster) -> None:
    trial.cluster.inject(status=503, user=trial.user)


def _error(trial: TrialCluster) -> None:
    trial.cluster.inject(status=500, user=trial.user)


def _slow(trial: TrialCluster) -> None:
    trial.cluster.inject(delay=2, user=trial.user)


DISTURBANCES = (
    RequestDisturbance(
        name="restart of the API server",
        did="every connection of the operator was cut, also its watches, and each new request",
        by_hand="--cut=before",
        begin=_cut,
    ),
    RequestDisturbance(
        name="lost history",
        did="its watches got 410 Gone, as after a restart of the API server with an emptied cache",
        by_hand="--verbs=watch --status=410 --times=20",
        begin=_lose_history,
    ),
    RequestDisturbance(
        name="429",
        did="each of its requests got 429 Too Many Requests",
        by_hand="--status=429",
        begin=_too_many,
    ),
    RequestDisturbance(
        name="503",
        did="each of its requests got 503 Service Unavailable",
        by_hand="--status=503",
        begin=_unavailable,
    ),
    RequestDisturbance(
        name="500",
        did="each of its requests got 500 Internal Server Error",
        by_hand="--status=500",
        begin=_error,
    ),
    RequestDisturbance(
        name="slow answers", did="each of its requests took 2 s", by_hand="--delay=2s", begin=_slow
    ),
)


def judge(context: Context, judgement: Judgement) -> None:
    context.require_reference()
    judgement.did.append(
        f"In a new cluster for each: when the operator was quiet, a Fault was added for {_SPAN_SECONDS:g} s and the custom resource"
        " created meanwhile; then it had to reach the undisturbed state."
    )
    judgement.by_hand = [
        f"mockube fault add disturb --name=by-hand --user={context.user} {DISTURBANCES[0].by_hand}",
        *context.by_hand("sleep 5; mockube fault remove disturb --name=by-hand"),
    ]
    for each in DISTURBANCES:
        with context.trial() as trial:
            _disturb(context, judgement, trial, each)


def _disturb(
    context: Context, judgement: Judgement, trial: TrialCluster, disturbance: RequestDisturbance
) -> None:
    judgement.did.append(f"{disturbance.name}: {disturbance.did}.")
    trial.create_others()
    trial.start_and_settle()
    disturbance.begin(trial)
    trial.create_resource()
    trial.pause(_SPAN_SECONDS)
    trial.cluster.stop_faults()
    begin = context.setup.clock.monotonic()
    took = context.wait_for_state(trial)
    command = f"mockube fault add disturb --name=by-hand --user={context.user} {disturbance.by_hand}"
    if took is None:
        judgement.add(
            "not-recovered",
            Level.ERROR,
            disturbance.name,
            f"it lasted {_SPAN_SECONDS:g} s, and the operator did not reach the undisturbed state in {context.setup.timeout:g} s after it",
            details=[*lines_of(context.expected.differences(trial)), *_log(trial)],
            by_hand=[command],
        )
    else:
        judgement.figures[f"{disturbance.name} recovered in"] = (
            f"{context.setup.clock.monotonic() - begin:.1f} s"
        )
    if trial.exits:
        judgement.add(
            "operator-exits",
            Level.WARNING,
            disturbance.name,
            f"the operator ended ({len(trial.exits)}x) with the code {trial.exits[0].code}, and was started again, as by a kubelet",
            details=trial.exits[0].log.splitlines(),
            by_hand=[command],
        )


def _log(trial: TrialCluster) -> list[str]:
    return [f"log: {line}" for line in trial.instances[0].last_lines().splitlines()[-3:]]
