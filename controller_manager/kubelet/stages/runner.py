"""Plays stages on objects of one resource: chooses the next for each, waits for its delay, and executes it.

The choice stays while the object stays at that stage, so that other changes do not delay it.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.clock import Clock
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.controller_manager.client.resources import Key
from mockube.controller_manager.kubelet.stages.document import Stage
from mockube.controller_manager.kubelet.stages.matching import choose, delay_of, matching_stages
from mockube.controller_manager.kubelet.stages.playing import stage_effects
from mockube.controller_manager.kubelet.status_writer import StatusWriter
from mockube.controller_manager.kubelet.template.expression import Environment, TemplateError

LOG = logging.getLogger(__name__)

MAX_IMMEDIATE_STEPS: Final = 100
"""Consecutive stages with immediateNextStage: more are a cycle."""


class _ChosenStage(NamedTuple):
    uid: str
    stage: Stage
    due: datetime


class StageRunner:
    def __init__(
        self,
        stages: Sequence[Stage],
        status_writer: StatusWriter,
        environment: Callable[[ReadOnlyTree], Environment],
        *,
        clock: Clock,
        random: Random,
    ) -> None:
        self._stages = stages
        self._status_writer = status_writer
        self._environment = environment
        self._clock = clock
        self._random = random
        self._chosen_stages: dict[Key, _ChosenStage] = {}

    def forget(self, key: Key) -> None:
        self._chosen_stages.pop(key, None)

    async def run(self, key: Key, obj: ReadOnlyTree) -> timedelta | None:
        """Execute what is due; returns when to requeue."""
        for _ in range(MAX_IMMEDIATE_STEPS):
            chosen = self._choose(key, obj)
            if chosen is None:
                return None
            wait = chosen.due - self._clock.now()
            if wait > timedelta(0):
                return wait
            result = await self._play(key, obj, chosen.stage)
            if result is None or not chosen.stage.immediate_next_stage:
                return None
            obj = result
        LOG.warning(
            "%s: %d consecutive stages have immediateNextStage: the cycle is stopped",
            key,
            MAX_IMMEDIATE_STEPS,
        )
        return None

    def _choose(self, key: Key, obj: ReadOnlyTree) -> _ChosenStage | None:
        possible = matching_stages(self._stages, obj)
        chosen = self._chosen_stages.pop(key, None)
        if chosen is None or chosen.uid != meta.uid(obj) or chosen.stage not in possible:
            stage = choose(possible, obj, self._random)
            if stage is None:
                return None
            now = self._clock.now()
            chosen = _ChosenStage(meta.uid(obj), stage, now + delay_of(stage, obj, now, self._random))
        self._chosen_stages[key] = chosen
        return chosen

    async def _play(self, key: Key, obj: ReadOnlyTree, stage: Stage) -> ReadOnlyTree | None:
        try:
            effects = stage_effects(stage, obj, self._environment(obj))
        except TemplateError as error:
            # It would fail again, so the object stays as it is until it changes.
            LOG.error("stage %s: %s: %s", stage.name, key, error)  # noqa: TRY400 - the stack does not show the template
            return None
        result = await self._status_writer.execute(key, obj, effects)
        self._chosen_stages.pop(key, None)
        return result
