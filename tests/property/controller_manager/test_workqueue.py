"""Invariants of the work queue: never two workers on one key, and no added key is lost."""

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mockube.client.queue.workqueue import WorkQueue

KEYS = st.sampled_from("abcd")


class CheckedMetrics:
    """A metrics provider that checks each reported event of a key."""

    def __init__(self):
        self.waiting = set()
        self.worked = set()

    def add(self, key):
        assert key not in self.waiting
        self.waiting.add(key)

    def get(self, key):
        assert key not in self.worked, "two workers have one key"
        self.waiting.remove(key)
        self.worked.add(key)

    def done(self, key):
        self.worked.remove(key)


def result_without_wait(taking):
    """Run a coroutine to its first wait; return its result if it does not wait."""
    try:
        taking.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("the queue has a key and does not give it")


class WorkQueueStateMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.metrics = CheckedMetrics()
        self.queue = WorkQueue(self.metrics)
        self.dirty = set()
        """Keys that were added, and not taken since."""
        self.taken = []

    @rule(key=KEYS)
    def add(self, key):
        self.queue.add(key)
        self.dirty.add(key)

    @precondition(lambda self: len(self.queue))
    @rule()
    def take(self):
        key = result_without_wait(self.queue.take())
        assert key not in self.taken
        self.taken.append(key)
        self.dirty.remove(key)

    @precondition(lambda self: self.taken)
    @rule(data=st.data())
    def done(self, data):
        key = data.draw(st.sampled_from(self.taken))
        self.taken.remove(key)
        self.queue.done(key)

    @invariant()
    def dirty_key_is_queued_or_processing(self):
        assert len(self.queue) == len(self.dirty - set(self.taken))
        assert self.metrics.waiting == self.dirty
        assert self.metrics.worked == set(self.taken)

    def teardown(self):
        """All added keys are taken in the end."""
        while self.taken or self.dirty:
            while len(self.queue):
                self.take()
            key = self.taken.pop()
            self.queue.done(key)


WorkQueueStateMachine.TestCase.settings = settings(max_examples=100, stateful_step_count=40)
TestWorkQueue = WorkQueueStateMachine.TestCase
