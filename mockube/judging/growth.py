"""Judgement 10: what does each of many custom resources cost, and does the cost of one grow with their number?"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from mockube.apimachinery import meta
from mockube.apimachinery.tree import ReadOnlyTree

from .context import Context
from .findings import Judgement, Level
from .trial_cluster import TrialCluster, is_write_call

_FIRST_SHARE = 10
_GROWTH = 1.5
_MIN_EXTRA_REQUESTS = 2.0
_MIN_EXTRA_BYTES = 20_000
_MAX_MEMORY = 1 << 20
_NODES = 20
_POLL_SECONDS = 1.0
"""Each look reads all that was recorded, which is much here."""
_QUIET_SECONDS = 5.0
"""A backlog of this many resources may pause."""
_SECONDS_EACH = 0.5


class Cost(Struct, frozen=True, kw_only=True):
    """What some of the custom resources cost, each."""

    count: int
    requests: float
    writes: float
    bytes_read: float
    """By gets and lists: a watch sends what has changed, however many objects there are."""
    seconds: float
    memory: int | None
    """What the operator needs more than before the first of all, for each."""


def judge(context: Context, judgement: Judgement) -> None:
    setup = context.setup
    context.require_reference()
    first = max(1, setup.resources // _FIRST_SHARE)
    judgement.did.append(
        f"Created {first} copies of the custom resource, waited until the operator was quiet, created the others of {setup.resources}"
        " (--resources), and compared the requests for each of the last with those for each of the first."
    )
    name = meta.name(setup.sample.resource)
    judgement.by_hand = context.by_hand(
        f"for i in $(seq {setup.resources}); do sed 's/name: {name}/name: {name}-'$i'/' {setup.sample.names[0]} | kubectl apply -f -; done",
        f"mockube requests --name=by-hand --user={context.user} | wc -l",
    )
    costs: list[Cost] = []
    with context.trial(nodes=_NODES) as trial:
        trial.create_others()
        trial.start_and_settle()
        trial.poll_seconds, trial.quiet_seconds = _POLL_SECONDS, _QUIET_SECONDS
        memory = trial.instances[0].memory()
        for begin, end in ((0, first), (first, setup.resources)):
            if end > begin:
                expected = costs[0].writes if costs else 0.0
                costs.append(_create(context, judgement, trial, (begin, end), memory, expected))
    _compare(judgement, *costs)


def _create(
    context: Context,
    judgement: Judgement,
    trial: TrialCluster,
    numbers: tuple[int, int],
    memory: int | None,
    expected: float,
) -> Cost:
    """Create custom resources, and return what each of them cost, as far as the operator has finished them in time.

    `expected` is how many writes each needs, as others have needed.
    """
    clock, (begin, end) = context.setup.clock, numbers
    since, start = clock.now(), clock.monotonic()
    name = meta.name(context.setup.sample.resource)
    for number in range(begin, end):
        trial.create_resource(name=f"{name}-{number}")
        trial.look_after()
    limit = context.setup.timeout + (end - begin) * _SECONDS_EACH
    least = max(1, round((end - begin) * expected))
    if not trial.settle_after_write(since, least, limit):
        judgement.add(
            "resources-not-finished",
            Level.WARNING,
            "Custom resources",
            f"were not finished in {limit:.0f} s when there were {end}: the operator wrote {len(trial.writes(since))} times, and still writes",
            details=[str(each) for each in trial.writes()[-3:]],
        )
    seconds = clock.monotonic() - start - trial.quiet_seconds
    after = trial.instances[0].memory()
    used = None if memory is None or after is None else max(0, after - memory) // end
    return _cost(trial, since, end - begin, seconds, used)


def _cost(trial: TrialCluster, since: datetime, count: int, seconds: float, memory: int | None) -> Cost:
    calls = trial.calls_for_objects(since)
    return Cost(
        count=count,
        requests=len(calls) / count,
        writes=sum(map(is_write_call, calls)) / count,
        bytes_read=_bytes_read(trial, since) / count,
        seconds=seconds,
        memory=memory,
    )


def _bytes_read(trial: TrialCluster, since: datetime) -> int:
    requests = trial.cluster.list("Request", fields={"user": trial.user})
    return sum(read_bytes(each) for each in requests if _time(each) >= since)


def _time(request: ReadOnlyTree) -> datetime:
    return datetime.fromisoformat(request["spec"]["time"])


def read_bytes(request: ReadOnlyTree) -> int:
    """Return the bytes that a request has read; watches send what has changed, however many objects there are."""
    status: Mapping[str, Any] = request.get("status") or {}
    return int(status.get("bytes") or 0) if request["spec"].get("verb") in ("get", "list") else 0


def _compare(judgement: Judgement, first: Cost, last: Cost | None = None) -> None:
    last = last or first
    for name, cost in ((f"of the first {first.count}", first), (f"of the last {last.count}", last)):
        judgement.figures |= {
            f"requests for each {name}": f"{cost.requests:.1f}",
            f"writes for each {name}": f"{cost.writes:.1f}",
            f"bytes read for each {name}": f"{cost.bytes_read:.0f}",
            f"seconds {name}": f"{cost.seconds:.1f}",
        }
    if last.memory is not None:
        judgement.figures["memory for each"] = f"{last.memory / 1024:.0f} KiB"
    for rule, subject, text in growth_findings(first, last):
        judgement.add(rule, Level.WARNING, subject, text)


def growth_findings(first: Cost, last: Cost) -> Sequence[tuple[str, str, str]]:
    """Return the rule, the subject and the message of each cost that grows."""
    found = []
    if last.requests > _GROWTH * first.requests and last.requests - first.requests > _MIN_EXTRA_REQUESTS:
        found.append(
            (
                "requests-grow",
                "Requests",
                f"for each custom resource grow from {first.requests:.1f} to {last.requests:.1f}",
            )
        )
    if last.bytes_read > _GROWTH * first.bytes_read and last.bytes_read - first.bytes_read > _MIN_EXTRA_BYTES:
        found.append(
            (
                "bytes-grow",
                "Bytes",
                (
                    f"read for each custom resource grow from {first.bytes_read:.0f} to {last.bytes_read:.0f}:"
                    " the operator lists all objects for each one"
                ),
            )
        )
    if last.memory is not None and last.memory > _MAX_MEMORY:
        found.append(
            (
                "memory-grows",
                "Memory",
                f"grows by {last.memory / (1 << 20):.1f} MiB with each custom resource",
            )
        )
    return found
