"""Each start of a task or a thread has a supervisor, and a test in which that task fails: see `task_tables.py`."""

from tests.architecture.source import PACKAGES, Module, module, paths
from tests.architecture.task_starts import callbacks, has_test, is_supervised, starts
from tests.architecture.task_tables import SUPERVISORS, TESTS

EXAMPLE = """
async def serve(server):
    asyncio.create_task(work())
    async with asyncio.TaskGroup() as group:
        start_in(group, "name", work())
    server.supervisor.start("name", work)
    start(f"work of {key}", work())

    def run():
        threading.Thread(target=run).start()
        re.match("a", "b").start()
        group.create_task

class Store:
    def expire(self):
        self._spawn(work(), "expire")
        task = loop.create_task(work(), name="first")
        task.add_done_callback(tasks.discard)
        task.add_done_callback(self.forget)
        loop.create_task(work(), name="first")
        clock.call_later(5, event.set)
        loop.call_soon(lambda: 1 / 0)
        loop.add_reader(file, read)
"""


def test_every_start_names_its_test_and_every_name_has_a_start():
    sites = {site for path in paths(*PACKAGES) for _, site in starts(module(path))}
    assert sorted(sites - TESTS.keys()) == [], "name in TESTS a test in which this task fails"
    assert sorted(TESTS.keys() - sites) == [], "nothing is started there any more"


def test_every_start_and_callback_names_its_supervisor():
    modules = [module(path) for path in paths(*PACKAGES)]
    sites = {site for of in modules for _, site in starts(of) if not is_supervised(site)}
    sites |= {site for of in modules for _, site in callbacks(of)}
    assert sorted(sites - SUPERVISORS.keys()) == [], "name in SUPERVISORS what becomes of an error"
    assert sorted(SUPERVISORS.keys() - sites) == [], "nothing is started there any more"


def test_every_named_test_exists():
    assert [name for name in sorted({*TESTS.values()}) if not has_test(name)] == []


def test_each_way_to_start_a_task_or_thread_is_found():
    found = [*starts(Module.of("a.py", EXAMPLE))]
    assert found == [
        (3, "a.py::serve create_task"),
        (4, "a.py::serve TaskGroup"),
        (5, "a.py::serve start_in 'name'"),
        (6, "a.py::serve supervisor.start 'name'"),
        (7, "a.py::serve start 'work of *'"),
        (10, "a.py::run Thread"),
        (16, "a.py::expire _spawn 'expire'"),
        (17, "a.py::expire create_task 'first'"),
        (20, "a.py::expire create_task 'first' 2"),
    ]
    assert [site for _, site in found if is_supervised(site)] == [site for _, site in found[2:5]]


def test_each_callback_that_can_fail_is_found():
    assert [*callbacks(Module.of("a.py", EXAMPLE))] == [
        (19, "a.py::expire add_done_callback"),
        (22, "a.py::expire call_soon"),
        (23, "a.py::expire add_reader"),
    ]


def test_test_that_does_not_exist_is_found():
    assert has_test("tests/architecture/test_task_starts.py::test_every_named_test_exists")
    assert not has_test("tests/architecture/test_task_starts.py::test_none")
    assert not has_test("tests/architecture/test_none.py::test_every_named_test_exists")
