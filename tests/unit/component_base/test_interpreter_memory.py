"""When a process collects garbage: each test runs in its own process, since the settings are global."""

import platform
import subprocess
import sys

import pytest

BEGIN = """
import asyncio, gc
from mockube.component_base.interpreter_memory import THRESHOLD, OldObjects

class Cycle:
    gone = 0
    def __init__(self):
        self.itself = self
    def __del__(self):
        Cycle.gone += 1

gc.disable()
gc.collect()
old = OldObjects()
old.begin()
here = gc.get_freeze_count()
"""


def run(script):
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + script], check=False, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done.stderr


def test_old_garbage_is_collected_when_objects_have_doubled():
    run("""
cycles = [Cycle() for _ in range(here * 3 // 4)]
assert not old.age()        # they become old
del cycles
assert not old.age()        # and are garbage, but less than all that there is besides
assert Cycle.gone == 0
more = [Cycle() for _ in range(here // 2)]
assert not old.age()
del more
assert old.age()
assert Cycle.gone == here * 3 // 4 + here // 2
assert not old.age()
""")


def test_many_old_objects_are_not_collected():
    run("""
few = OldObjects(maximum=here)
few.begin()
more = [Cycle() for _ in range(here * 2)]
assert not few.age()
del more
assert not few.age()
assert Cycle.gone == 0
""")


def test_old_objects_are_not_counted_while_there_are_many():
    run("""
few = OldObjects(maximum=here)
few.begin()
more = [[] for _ in range(here * 8)]
gc.get_freeze_count = None  # counting them would raise an error
assert not few.age()
""")


def test_short_lived_objects_do_not_count_as_old():
    run("""
for _ in range(3):
    request = [[] for _ in range(here * 3)]
    assert not old.age()
    del request
""")


def test_young_garbage_is_collected_at_once():
    run("""
Cycle()
old.age()
assert Cycle.gone == 1
""")


@pytest.mark.thorough
def test_automatic_collection_covers_young_objects_only():
    run("""
found = []
gc.callbacks.append(lambda phase, about: found.append((about["generation"], gc.get_count()[0])))
gc.set_threshold(*THRESHOLD)
gc.enable()
large = [[] for _ in range(60 * THRESHOLD[0])]
assert len(found) >= 50
assert {generation for generation, _ in found} == {0}
assert max(count for _, count in found) < 2 * THRESHOLD[0]
""")


def test_ageing_runs_with_event_loop():
    run("""
async def main():
    old.age_periodically(asyncio.get_running_loop(), 0.0)
    while Cycle.gone < 3:
        Cycle()
        await asyncio.sleep(0)

asyncio.run(main())
""")


@pytest.mark.thorough
@pytest.mark.parametrize("size", [1, 1 << 20])
def test_stored_objects_are_not_traversed(size):
    run(f"""
from mockube.apiserver.storage.stored_object import StoredObject
assert not gc.is_tracked(StoredObject(b"key", b"x" * {size}, 1))
""")


@pytest.mark.thorough
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_free_pages_between_pages_in_use_are_returned():
    run("""
from pathlib import Path
from mockube.component_base.interpreter_memory import return_free_memory

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1])

texts = [bytes(60_000) for _ in range(2000)]
del texts[::2]
before = resident()
return_free_memory()
assert before - resident() > 10_000, (before, resident())
""")
