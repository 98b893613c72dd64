"""Any sequence of requests of several users gets its memory, within the capacity, once others have ended."""

import asyncio

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from mockube.apimachinery.status import TooManyRequests
from mockube.apiserver import memory_limit
from mockube.apiserver.memory_limit import MemoryLimit, Reservation
from tests.support.event_loop import yield_to_loop

CAPACITY = 32
LONGEST_QUEUE = 6

users = st.sampled_from("abcd")
sizes = st.integers(1, CAPACITY + 2)


class Request:
    """A request of a user; `step` is what it waits for."""

    def __init__(self, limit, user):
        self.user = user
        self.reservation = Reservation(limit, user)
        self.size = 0
        self.step = None
        self.has_begun = False

    def grow(self, size):
        self.size = max(size, self.size)
        self.step = asyncio.create_task(self.reservation.grow(size))

    @property
    def waits(self):
        return not self.step.done()

    @property
    def wanted(self):
        return min(self.size, CAPACITY)

    @property
    def reserved(self):
        return 0 if self.waits else self.wanted


class LimitMachine(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.runner = asyncio.Runner()
        self.limit = MemoryLimit(CAPACITY, minimum=1)
        self.requests = []
        self.maximum, memory_limit.MAX_WAITING_REQUESTS = memory_limit.MAX_WAITING_REQUESTS, LONGEST_QUEUE

    def teardown(self):
        """Every request ends when those with memory end, one after the other."""
        try:
            while self.requests:
                self.end(next(request for request in self.requests if not request.waits))
            assert (self.limit.reserved, self.limit.waiting) == (0, 0)
            assert not self.limit._owners, "users without requests are forgotten"
        finally:
            self.runner.close()
            memory_limit.MAX_WAITING_REQUESTS = self.maximum

    def run(self, action):
        async def run():
            action()
            await yield_to_loop(4)

        self.runner.run(run())
        for request in list(self.requests):
            if not request.waits:
                self.note_end_of_step(request)

    def note_end_of_step(self, request):
        """Remove a request that was refused or cancelled; only those that had not begun are refused."""
        if request.step.cancelled():
            self.requests.remove(request)
        elif isinstance(request.step.exception(), TooManyRequests):
            assert not request.has_begun
            self.requests.remove(request)
        else:
            request.has_begun = True

    @rule(user=users, size=sizes)
    def begin(self, user, size):
        request = Request(self.limit, user)
        self.requests.append(request)
        self.run(lambda: request.grow(size))

    @precondition(lambda self: self.having_memory)
    @rule(data=st.data(), size=sizes)
    def grow(self, data, size):
        request = data.draw(st.sampled_from(self.having_memory))
        self.run(lambda: request.grow(size))

    @precondition(lambda self: self.having_memory)
    @rule(data=st.data(), size=sizes)
    def call_another_server(self, data, size):
        """The request releases its memory for a call, while another one reserves some."""
        request = data.draw(st.sampled_from(self.having_memory))
        other = Request(self.limit, request.user)

        async def call():
            async with request.reservation.suspend():
                self.requests.append(other)
                other.grow(size)
                await yield_to_loop()

        def suspend():
            request.step = asyncio.create_task(call())

        self.run(suspend)

    @precondition(lambda self: self.having_memory)
    @rule(data=st.data())
    def end_one(self, data):
        self.end(data.draw(st.sampled_from(self.having_memory)))

    def end(self, request):
        self.requests.remove(request)
        self.run(request.reservation.release)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def cancel(self, data):
        request = data.draw(st.sampled_from(self.waiting))
        self.run(request.step.cancel)

    @precondition(lambda self: self.having_memory and self.waiting)
    @rule(data=st.data())
    def end_one_and_cancel_another_at_once(self, data):
        ended = data.draw(st.sampled_from(self.having_memory))
        cancelled = data.draw(st.sampled_from(self.waiting))
        self.requests.remove(ended)

        def both():
            ended.reservation.release()
            cancelled.step.cancel()

        self.run(both)

    @property
    def having_memory(self):
        return [request for request in self.requests if not request.waits]

    @property
    def waiting(self):
        return [request for request in self.requests if request.waits]

    def reserved_by(self, user):
        return sum(request.reserved for request in self.requests if request.user == user)

    @invariant()
    def reservations_are_those_of_the_requests(self):
        assert self.limit.reserved == sum(request.reserved for request in self.requests) <= CAPACITY
        assert self.limit.waiting == len(self.waiting)

    @invariant()
    def queue_has_a_limit(self):
        assert sum(not request.has_begun for request in self.waiting) <= LONGEST_QUEUE

    @invariant()
    def no_request_waits_for_a_lost_wake_up(self):
        """A user without memory waits only if a request of such a user does not fit."""
        free = CAPACITY - self.limit.reserved
        without_memory = [request for request in self.waiting if not self.reserved_by(request.user)]
        assert not without_memory or any(request.wanted > free for request in without_memory)


TestMemoryLimit = LimitMachine.TestCase
