"""What is said while something goes on, at a terminal and elsewhere."""

import io

from mockube.apimachinery.clock import SteppedClock
from mockube.cli.progress import Progress


def said(*, live):
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


def test_elsewhere_each_step_is_a_line():
    assert said(live=False) == "mockube: starting\nmockube: something happened\nmockube: waiting\n"


def test_at_a_terminal_one_line_lives_until_something_else_is_said():
    erase = "\r\x1b[K"
    assert said(live=True) == (
        f"{erase}mockube: starting ... 0.0 s"
        f"{erase}mockube: starting ... 0.1 s"
        f"{erase}mockube: something happened\n"
        f"{erase}mockube: waiting ... 0.1 s"
        f"{erase}mockube: waiting ... 0.2 s"
        f"{erase}"
    )
