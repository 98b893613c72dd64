"""What is said while something goes on, at a terminal and elsewhere."""

import io

from apimachinery.clock import SteppedClock
from mockube.cli.progress import Progress


def said(*, live):
    out, clock = io.StringIO(), SteppedClock()
    progress = Progress(out, live=live, clock=clock)
    progress.step("starting")
    clock.advance(0.15)
    progress.say("something happened")
    progress.step("waiting")
    clock.advance(0.1)
    progress.done()
    clock.advance(10)
    return out.getvalue()


def test_elsewhere_each_step_is_a_line():
    assert said(live=False) == "mockube: starting\nmockube: something happened\nmockube: waiting\n"


def test_at_a_terminal_one_line_lives_and_is_gone_at_the_end():
    lines = [line.split("\r\x1b[K") for line in said(live=True).split("\n")]
    assert lines[0] == [
        "",
        "mockube: starting ... 0.0 s",
        "mockube: starting ... 0.1 s",
        "mockube: something happened",
    ]
    assert lines[1][-1] == "", "nothing is left of the live line"
    assert "mockube: waiting ... 0.2 s" in lines[1]
