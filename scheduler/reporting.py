"""Report in Events and in the status of pods what the scheduler has decided."""

import logging
from collections.abc import Iterable
from typing import Final

from mockube.apimachinery.status import ApiError, Conflict, NotFound
from mockube.client.component import ComponentContext
from mockube.client.events.recorder import Recorder
from mockube.client.kinds import PODS
from mockube.client.podview import PodView
from mockube.client.wire import NoResponse

from . import pods
from .failure import SchedulingFailure
from .podinfo import PodInfo

LOG: Final = logging.getLogger(__name__)


class PodReporter:
    """Its Events come from the profile of each pod, as from a scheduler of that name."""

    def __init__(self, context: ComponentContext, profiles: Iterable[str]) -> None:
        self._client = context.client
        self._clock = context.clock
        self._recorders = {name: context.recorder.series_of(name, name, can_wait=True) for name in profiles}

    def recorder_of(self, view: PodView) -> Recorder:
        return self._recorders[pods.scheduler_name(view)]

    def report_bound(self, pod: PodInfo, node: str) -> None:
        view = pod.view
        text = f"Successfully assigned {view.key} to {node}"
        self.recorder_of(view).record(view.object, "Normal", "Scheduled", text, action="Binding")

    async def report_failure(
        self, view: PodView, failure: SchedulingFailure, nominee: str | None, reason: str
    ) -> None:
        """Report why a pod is not scheduled. A `nominee` of None keeps the node for which the pod is nominated."""
        about = view.object
        self.recorder_of(view).record(about, "Warning", "FailedScheduling", failure.note, action="Scheduling")
        patch = pods.unschedulable_patch(about, failure.message, self._clock.now(), nominee, reason)
        try:
            if patch is not None:
                await self._client.patch(PODS, view.key, patch, subresource="status")
        except (NotFound, Conflict):
            return  # The pod is deleted, which an event will report.
        except (ApiError, NoResponse) as error:
            LOG.warning("scheduler: %s: %s", view.key, error)
