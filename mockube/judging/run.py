"""The twelve judgements in their order, one after another."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from traceback import extract_tb
from typing import Final

from msgspec import Struct

from mockube.objects.errors import EXPLAINED

from . import (
    deletions,
    disturbances,
    drift,
    growth,
    install,
    releases,
    replicas,
    restarts,
    rights,
    updates,
    upgrade,
    webhooks,
)
from .context import Context, NotApplicable
from .findings import Judgement, Level
from .trial_cluster import Interrupted


class Judge(Struct, frozen=True, kw_only=True):
    name: str
    question: str
    judge: Callable[[Context, Judgement], None]


JUDGES: Final[Sequence[Judge]] = (
    Judge(
        name="install",
        question="Does it install, finish its resource, and become quiet?",
        judge=install.judge,
    ),
    Judge(
        name="rights", question="Does it have the rights that it needs, and no others?", judge=rights.judge
    ),
    Judge(name="restarts", question="Does a restart change nothing, and lose nothing?", judge=restarts.judge),
    Judge(
        name="disturbances",
        question="Does it survive a restart of the API server, refused and slow requests?",
        judge=disturbances.judge,
    ),
    Judge(name="drift", question="Does it repair what somebody deletes or changes?", judge=drift.judge),
    Judge(name="deletions", question="Does a deletion end, and leave nothing?", judge=deletions.judge),
    Judge(
        name="updates",
        question="Does each field have an effect, and none when it is changed back?",
        judge=updates.judge,
    ),
    Judge(
        name="replicas",
        question="Does only one of two instances write, and the other one take over?",
        judge=replicas.judge,
    ),
    Judge(
        name="upgrade",
        question="Is an upgrade from the version before the same as a new installation?",
        judge=upgrade.judge,
    ),
    Judge(name="growth", question="What does each of many resources cost?", judge=growth.judge),
    Judge(
        name="releases",
        question="Does it do the same in every minor release of Kubernetes?",
        judge=releases.judge,
    ),
    Judge(name="webhooks", question="Are its webhooks and conversions safe?", judge=webhooks.judge),
)
NAMES: Final = tuple(each.name for each in JUDGES)
NOT_JUDGED: Final = "not-judged"
"""The rule of what says nothing about the operator: a judgement could not be made."""
_LAST: Final = "rights"
"""This one is made of what the operator did in all others."""


def judge_all(context: Context, chosen: Sequence[str], *, jobs: int = 1) -> Sequence[Judgement]:
    """Make the chosen judgements, several at the same time, and return them in their order.

    The first one is always made, before the others, which compare with it.
    """
    first, *others = (each for each in JUDGES if each.name in chosen or each is JUDGES[0])
    context.left_out = [name for name in NAMES if name not in {first.name, *chosen}]
    judgements = {first.name: _judge(context, first)}
    with ThreadPoolExecutor(max_workers=jobs) as threads:
        between = [each for each in others if each.name != _LAST]
        try:
            judgements |= {each.name: each for each in threads.map(partial(_judge, context), between)}
        except (
            BaseException
        ):  # such as Ctrl-C: the pool waits for its threads, which wait for their operators
            context.setup.interrupted.set()
            threads.shutdown(cancel_futures=True)
            raise
    judgements |= {each.name: _judge(context, each) for each in others if each.name == _LAST}
    return [judgements[name] for name in NAMES if name in judgements]


def _judge(context: Context, judge: Judge) -> Judgement:
    context.on_step(judge.name)
    judgement = Judgement(name=judge.name, question=judge.question)
    start = context.setup.clock.monotonic()
    try:
        judge.judge(context, judgement)
    except NotApplicable as reason:
        if not judgement.findings:
            judgement.reason = str(reason)
    except Interrupted:
        raise
    except (*EXPLAINED, TimeoutError) as error:
        judgement.add(NOT_JUDGED, Level.ERROR, judge.name, f"could not be made: {error}")
    except Exception as error:  # noqa: BLE001 - the other judgements count, whatever happens in this one
        judgement.add(
            NOT_JUDGED,
            Level.ERROR,
            judge.name,
            f"could not be made: {type(error).__name__}: {error}",
            details=[
                f"in {each.name}, {Path(each.filename).name}:{each.lineno}"
                for each in extract_tb(error.__traceback__)[-3:]
            ],
        )
    if any(finding.rule == NOT_JUDGED for finding in judgement.findings) and judge is JUDGES[0]:
        context.no_reference = f"`{judge.name}`, with whose state it compares, could not be made"
    judgement.seconds = context.setup.clock.monotonic() - start
    return judgement
