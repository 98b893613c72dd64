"""Progress output, on a terminal and without one."""

import io

from mockube.cli.progress import FrequentSteps, Progress
from mockube.component_base.clock import SteppedClock


def progress_output(*, live):
    out, clock = io.StringIO(), SteppedClock()
    progress = Progress(out, live=live, clock=clock)
    progress.step("starting")
    clock.advance(0.15)
    progress.report("something happened")
    progress.step("waiting")
    clock.advance(0.1)
    progress.done()
    clock.advance(10)
    return out.getvalue()


def test_progress_without_terminal_prints_one_line_per_step():
    assert progress_output(live=False) == "mockube: starting\nmockube: something happened\nmockube: waiting\n"


def test_progress_at_terminal_updates_one_line():
    erase = "\r\x1b[K"
    assert progress_output(live=True) == (
        f"{erase}mockube: starting ... 0.0 s"
        f"{erase}mockube: starting ... 0.1 s"
        f"{erase}mockube: something happened\n"
        f"{erase}mockube: waiting ... 0.1 s"
        f"{erase}mockube: waiting ... 0.2 s"
        f"{erase}"
    )


def test_steps_that_follow_at_once_are_not_shown():
    out, clock = io.StringIO(), SteppedClock()
    steps = FrequentSteps(Progress(out, live=False, clock=clock), clock)
    for message in ("one", "two", "three"):
        steps.step(message)
        clock.advance(0.05)
    assert out.getvalue() == "mockube: one\nmockube: three\n"
