import asyncio

import pytest

from mockube.exploration import run_places
from mockube.exploration.run_places import FEWEST, MOST, Machine, RunPlaces
from tests.support.event_loop import yield_to_loop
from tests.support.instant_clock import InstantClock

CORES = 2


@pytest.fixture
def places(monkeypatch):
    monkeypatch.setattr(run_places, "cores", lambda: CORES)
    return RunPlaces(0, InstantClock())


def adapted(places, idle, times=1, *, free_memory=0.9):
    """Return how many places there are, and for how many of them a run was begun."""
    begun = []
    for _ in range(times):
        places.adapt(idle, free_memory, lambda: begun.append(1))
    return places.count, len(begun)


def test_idle_processors_get_more_runs_up_to_a_limit(places):
    assert adapted(places, idle=0.9) == (FEWEST * CORES + CORES, CORES)
    assert adapted(places, idle=0.9, times=100) == (MOST * CORES, (MOST - FEWEST - 1) * CORES)


@pytest.mark.parametrize(("idle", "free_memory"), [(0.05, 0.9), (0.9, 0.1)])
def test_busy_machine_gets_fewer_runs_down_to_those_of_the_start(places, idle, free_memory):
    adapted(places, idle=0.9, times=3)
    assert adapted(places, idle, free_memory=free_memory) == ((FEWEST + 3) * CORES - 1, 0)
    assert adapted(places, idle, times=100, free_memory=free_memory) == (FEWEST * CORES, 0)


def test_number_stays_while_processors_are_partly_idle(places):
    assert adapted(places, idle=0.3, times=5) == (FEWEST * CORES, 0)


class Runs:
    """Runs that hold places until a test ends them, the oldest first."""

    def __init__(self, places):
        self._places, self._ends = places, []
        self.begun, self._tasks = [], []

    async def begin(self, name, *, is_urgent=False):
        self._tasks.append(asyncio.create_task(self._run(name, is_urgent)))
        await yield_to_loop(3)
        return self._tasks[-1]

    async def _run(self, name, is_urgent):
        async with self._places.place(is_urgent=is_urgent):
            self.begun.append(name)
            end = asyncio.Event()
            self._ends.append(end)
            await end.wait()

    async def end(self, count):
        for _ in range(count):
            self._ends.pop(0).set()
            await yield_to_loop(3)


async def test_place_that_is_no_more_is_taken_until_its_run_ends(places):
    adapted(places, idle=0.9)
    runs = Runs(places)
    for number in range(places.count):
        await runs.begin(number)
    adapted(places, idle=0.0, times=CORES)
    await runs.begin("next")
    await runs.end(CORES)
    assert "next" not in runs.begun
    await runs.end(1)
    assert "next" in runs.begun
    await runs.end(places.count)


async def test_urgent_runs_get_a_place_before_those_that_wait_longer():
    runs = Runs(RunPlaces(1, InstantClock()))
    await runs.begin("first")
    await runs.begin("plan")
    cancelled = await runs.begin("cancelled", is_urgent=True)
    for name in ("urgent", "urgent too"):
        await runs.begin(name, is_urgent=True)
    cancelled.cancel()
    await runs.end(1)
    await runs.end(1)
    await runs.begin("next plan")
    await runs.end(1)
    await runs.end(1)
    assert runs.begun == ["first", "urgent", "urgent too", "plan", "next plan"]
    await runs.end(1)


async def test_urgent_runs_leave_half_of_the_places_to_others():
    runs = Runs(RunPlaces(4, InstantClock()))
    for name in range(4):
        await runs.begin(name)
    await runs.begin("plan")
    for name in ("first", "second", "third"):
        await runs.begin(name, is_urgent=True)
    await runs.end(3)
    assert runs.begun[4:] == ["first", "second", "plan"]
    await runs.end(1)
    assert runs.begun[7:] == ["third"]
    await runs.end(4)


async def test_given_number_of_jobs_stays():
    places = RunPlaces(3, InstantClock())
    await places.adapt_to_machine(lambda: None)
    assert adapted(places, idle=1.0, times=5) == (3, 0)


async def test_number_is_adapted_each_second(places, monkeypatch):
    """The processors are idle for two seconds, and then the system does not say it any more."""
    found = iter([Machine(10.0, 0.9), Machine(12.0, 0.9), Machine(12.0, 0.9), Machine(14.0, 0.9), None])
    monkeypatch.setattr(Machine, "read", lambda: next(found))
    begun = []
    await places.adapt_to_machine(lambda: begun.append(1))
    assert (places.count, len(begun)) == ((FEWEST + 2) * CORES, 2 * CORES)


def test_machine_is_read(tmp_path):
    (tmp_path / "stat").write_text("cpu  10 0 10 700 100 0 0 0 0 0\ncpu0 1 1 1 1 1 0 0 0 0 0\n")
    (tmp_path / "meminfo").write_text("MemTotal:  1000 kB\nMemFree:  100 kB\nMemAvailable:  250 kB\n")
    assert Machine.read(tmp_path) == (8.0, 0.25)
    assert Machine.read(tmp_path / "no") is None
