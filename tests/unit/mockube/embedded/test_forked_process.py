"""The handle's side of a fork: commands and responses in order, errors, and the end. A thread stands for the process."""

import os
import threading

import pytest

from mockube.apiserver.control.matching import Match
from mockube.embedded import fork_messages as messages
from mockube.embedded.forked_process import ForkedProcess, ForkEnded
from mockube.failure import Failure
from tests.support.event_loop import WAIT_TIMEOUT

STARTED = messages.Started(port=6443)
MISSING_PID = 2**22 + 1
"""No process has it."""


@pytest.fixture
def start():
    """Start a process that sends some responses: the first at once, and each other one after a command."""
    threads = []

    def start(*responses):
        def start_process(theirs):
            ours = theirs.dup()

            def run():
                frames, waiting = messages.FrameBuffer(), [*responses]
                with ours:
                    ours.sendall(messages.encode_frame(waiting.pop(0)))
                    while waiting and (data := ours.recv(1 << 16)):
                        for _ in frames.receive(data):
                            ours.sendall(messages.encode_frame(waiting.pop(0)))

            threads.append(threading.Thread(target=run))
            threads[-1].start()
            return MISSING_PID

        return ForkedProcess(start_process, is_child=False)

    yield start
    for thread in threads:
        thread.join(WAIT_TIMEOUT)


def test_results_are_those_of_the_commands(start):
    process = start(STARTED, messages.result_of(7), messages.result_of(["a line"]))
    assert process.port == 6443
    assert process.call(messages.CountHits(number=1), int) == 7
    assert process.call(messages.ListComplaints(), list[str]) == ["a line"]
    process.stop()
    assert not process.is_running
    with pytest.raises(ForkEnded, match="the fork was stopped"):
        process.call(messages.ClearCalls())


def test_refusals_are_errors(start):
    process = start(
        STARTED, messages.Refused(message="wrong", is_invalid=True), messages.Refused(message="impossible")
    )
    with pytest.raises(ValueError, match="wrong"):
        process.call(messages.CheckMatch(match=Match()))
    with pytest.raises(Failure, match="impossible"):
        process.call(messages.Fork())
    process.stop()


def test_process_that_does_not_start_is_an_error(start):
    with pytest.raises(Failure, match="too many files"):
        start(messages.Refused(message="too many files"))


def test_process_that_cannot_be_started_leaves_no_descriptor():
    def fail(_):
        raise Failure("no")

    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - their number
    with pytest.raises(Failure, match="no"):
        ForkedProcess(fail, is_child=False)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - as above


def test_process_that_does_not_respond_is_an_error():
    def start_process(theirs):
        silent = theirs.dup()
        threading.Thread(target=lambda: (silent.recv(1), silent.close())).start()  # until the handle ends
        return MISSING_PID

    with pytest.raises(Failure, match=r"the fork did not start within 0\.01 s: a thread of this process"):
        ForkedProcess(start_process, is_child=False, seconds=0.01)


def test_process_that_ends_is_an_error(start):
    process = start(STARTED)
    with pytest.raises(ForkEnded, match="the fork has ended"):
        process.call(messages.ClearCalls())
    process.stop()


def test_response_of_an_interrupted_command_is_skipped(start):
    process = start(STARTED, messages.result_of("late"), messages.result_of("mine"))
    receive = process._receive

    def interrupt():
        raise KeyboardInterrupt

    process._receive = interrupt
    with pytest.raises(KeyboardInterrupt):
        process.call(messages.AdvanceClock(seconds=1e9))
    process._receive = receive
    assert process.call(messages.ListComplaints(), str) == "mine"
    process.stop()


def test_frames_are_complete_whatever_the_pieces():
    stream = b"".join(messages.encode_frame(messages.result_of("x" * length)) for length in (0, 1, 300))
    for size in (1, 2, 5, 1000):
        buffer = messages.FrameBuffer()
        bodies = [
            body for at in range(0, len(stream), size) for body in buffer.receive(stream[at : at + size])
        ]
        assert [messages.RESPONSES.decode(body) for body in bodies] == [
            messages.result_of("x" * length) for length in (0, 1, 300)
        ]
