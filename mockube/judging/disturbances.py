"""Judgement 4: does the operator survive a restart of the API server, 429s, errors and slow answers?"""

from collections.abc import Callable

from msgspec import Struct

from .bench import Bench
from .context import Context
from .findings import Judgement, Level
from .reference import lines_of

_SPAN_SECONDS = 5.0


class RequestDisturbance(Struct, frozen=True, kw_only=True):
    name: str
    did: str
    by_hand: str
    begin: Callable[[Bench], None]


def _cut(bench: Bench) -> None:
    bench.cluster.inject(cut="before", user=bench.user)


def _lose_history(bench: Bench) -> None:
    bench.cluster.inject(status=410, user=bench.user, verb="watch", times=20)


def _too_many(bench: Bench) -> None:
    bench.cluster.inject(status=429, retry_after=1, user=bench.user)


def _unavailable(bench: Bench) -> None:
    bench.cluster.inject(status=503, user=bench.user)


def _error(bench: Bench) -> None:
    bench.cluster.inject(status=500, user=bench.user)


def _slow(bench: Bench) -> None:
    bench.cluster.inject(delay=2, user=bench.user)


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
        with context.bench() as bench:
            _disturb(context, judgement, bench, each)


def _disturb(context: Context, judgement: Judgement, bench: Bench, disturbance: RequestDisturbance) -> None:
    judgement.did.append(f"{disturbance.name}: {disturbance.did}.")
    bench.create_others()
    bench.start_and_settle()
    disturbance.begin(bench)
    bench.create_resource()
    bench.pause(_SPAN_SECONDS)
    bench.cluster.stop_faults()
    begin = context.setup.clock.monotonic()
    took = context.wait_for_state(bench)
    command = f"mockube fault add disturb --name=by-hand --user={context.user} {disturbance.by_hand}"
    if took is None:
        judgement.add(
            "not-recovered",
            Level.ERROR,
            disturbance.name,
            f"it lasted {_SPAN_SECONDS:g} s, and the operator did not reach the undisturbed state in {context.setup.timeout:g} s after it",
            details=[*lines_of(context.expected.differences(bench)), *_log(bench)],
            by_hand=[command],
        )
    else:
        judgement.figures[f"{disturbance.name} recovered in"] = (
            f"{context.setup.clock.monotonic() - begin:.1f} s"
        )
    if bench.exits:
        judgement.add(
            "operator-exits",
            Level.WARNING,
            disturbance.name,
            f"the operator ended ({len(bench.exits)}x) with the code {bench.exits[0].code}, and was started again, as by a kubelet",
            details=bench.exits[0].log.splitlines(),
            by_hand=[command],
        )


def _log(bench: Bench) -> list[str]:
    return [f"log: {line}" for line in bench.instances[0].last_lines().splitlines()[-3:]]
