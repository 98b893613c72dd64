"""What a report of a run contains: the answers of its fork, with the moments of the plan as Marks."""

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec.structs import replace

from mockube.apimachinery.status import ApiError
from mockube.apimachinery.tree import Tree
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse
from mockube.failure import Failure
from mockube.report.collection import SECONDS, collect
from mockube.report.recording import RecordedRun, Subject

from .run_outcome import RunOutcome

UNDISTURBED: Final = "Undisturbed"
DISTURBED: Final = "Disturbed"
MARKED: Final = ("step", "disturbance")
"""The notes of a run that its timeline marks: their beginnings are the texts of the marks."""


async def record_run(client: Client, outcome: RunOutcome, revision: int) -> RecordedRun | None:
    """Return what a fork answers at the end of a run that began at a revision; None if it does not answer."""
    try:
        recording = await collect(client, Subject(title=str(outcome.plan)), SECONDS)
    except (ApiError, NoResponse, Failure):  # a finding counts without its report, too
        return None
    marks = [*_marks(outcome, revision)]
    return RecordedRun(
        recording=replace(recording, marks=marks, faults=[]),  # the Faults of a plan are its Marks
        revisions=[each.revision for each in outcome.trace.changes],
    )


def runs_by_name(
    undisturbed: RecordedRun | None, disturbed: RecordedRun | None = None
) -> Mapping[str, RecordedRun]:
    """Return the runs that were recorded."""
    both = {UNDISTURBED: undisturbed, DISTURBED: disturbed}
    return {name: each for name, each in both.items() if each is not None}


def _marks(outcome: RunOutcome, revision: int) -> Iterator[Tree]:
    for note in outcome.trace.notes:
        name = note.text.partition(":")[0]
        if name.startswith(MARKED):
            yield {"metadata": {"name": name}, "spec": {"revision": note.revision or revision}}
