"""Runs the stages of objects of one resource: chooses the next stage of each object, waits for its delay, executes it.

A choice remains while the stage matches the object, so that other changes do not delay it.
"""

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from mockube.apimachinery import meta
from mockube.apimachinery.randomness import Random
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.client.resources import Key
from mockube.component_base.clock import Clock
from mockube.container_runtime.records import Records
from mockube.kubelet.status_writer import StatusWriter
from mockube.kubelet.template.expression import Environment, TemplateError

from .document import Stage
from .matching import choose_stage, delay_of, matching_stages
from .playing import stage_effects

LOG = logging.getLogger(__name__)

MAX_IMMEDIATE_STEPS: Final = 100
"""The maximum number of consecutive stages with immediateNextStage; more count as a cycle."""


class _ChosenStage(NamedTuple):
    stage: Stage
    due: datetime


class StageRunner:
    def __init__(
        self,
        records: Records,
        stages: Sequence[Stage],
        status_writer: StatusWriter,
        environment: Callable[[ReadOnlyTree], Environment],
        *,
        clock: Clock,
        random: Random,
    ) -> None:
        self._records = records
        self._stages = stages
        self._status_writer = status_writer
        self._environment = environment
        self._clock = clock
        self._random = random

    async def run(self, key: Key, obj: ReadOnlyTree) -> timedelta | None:
        """Execute the stages that are due; return the delay after which to requeue the object, or None."""
        for _ in range(MAX_IMMEDIATE_STEPS):
            choice = self._choose(obj)
            if choice is None:
                return None
            wait = choice.due - self._clock.now()
            if wait > timedelta(0):
                return wait
            result = await self._execute(key, obj, choice.stage)
            if result is None or not choice.stage.immediate_next_stage:
                return None
            obj = result
        LOG.warning(
            "%s: %d consecutive stages have immediateNextStage: the cycle is stopped",
            key,
            MAX_IMMEDIATE_STEPS,
        )
        return None

    def _choose(self, obj: ReadOnlyTree) -> _ChosenStage | None:
        matching = matching_stages(self._stages, obj)
        choice = self._records.pop(meta.uid(obj), _ChosenStage)
        if choice is None or choice.stage not in matching:
            stage = choose_stage(matching, obj, self._random)
            if stage is None:
                return None
            now = self._clock.now()
            choice = _ChosenStage(stage, now + delay_of(stage, obj, now, self._random))
        self._records.put(meta.uid(obj), choice)
        return choice

    async def _execute(self, key: Key, obj: ReadOnlyTree, stage: Stage) -> ReadOnlyTree | None:
        try:
            effects = stage_effects(stage, obj, self._environment(obj))
        except TemplateError as error:
            # The template would fail again, so nothing is retried until the object changes.
            LOG.error("stage %s: %s: %s", stage.name, key, error)  # noqa: TRY400 - the stack does not show the template
            return None
        result = await self._status_writer.execute(key, obj, effects)
        self._records.pop(meta.uid(obj), _ChosenStage)
        return result
