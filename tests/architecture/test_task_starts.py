"""Each place that starts a task or a thread has a test in which that task fails: `TESTS` in `task_starts.py` names it."""

from tests.architecture.source import PACKAGES, Module, module, paths
from tests.architecture.task_starts import TESTS, has_test, starts

EXAMPLE = """
async def serve(server):
    asyncio.create_task(work())
    async with asyncio.TaskGroup() as group:
        start_in(group, "name", work())
    server.supervisor.start("name", work)
    start("name", work())

    def run():
        threading.Thread(target=run).start()
        re.match("a", "b").start()
        group.create_task

class Store:
    def expire(self):
        self._spawn(work(), "expire")
"""


def test_every_start_names_its_test_and_every_name_has_a_start():
    places = {place for path in paths(*PACKAGES) for _, place in starts(module(path))}
    assert sorted(places - TESTS.keys()) == [], "name in TESTS a test in which this task fails"
    assert sorted(TESTS.keys() - places) == [], "nothing is started there any more"


def test_every_named_test_exists():
    assert [name for name in sorted({*TESTS.values()}) if not has_test(name)] == []


def test_each_way_to_start_a_task_or_thread_is_found():
    found = [*starts(Module.of("a.py", EXAMPLE))]
    assert found == [
        *((line, "a.py::serve") for line in (3, 4, 5, 6, 7)),
        *((line, "a.py::run") for line in (10,)),
        (16, "a.py::expire"),
    ]


def test_test_that_does_not_exist_is_found():
    assert has_test("tests/architecture/test_task_starts.py::test_every_named_test_exists")
    assert not has_test("tests/architecture/test_task_starts.py::test_none")
    assert not has_test("tests/architecture/test_none.py::test_every_named_test_exists")
