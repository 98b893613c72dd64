"""The worker in the background gets tests that need a processor only, and the others take over what it does not reach."""

from types import SimpleNamespace

import pytest

from tests.support.background_worker import BackgroundScheduling, needs_processor_only

WAITING = [f"tests/cli/test_up.py::test_{number}" for number in range(6)]
COMPUTING = [f"tests/property/test_patterns.py::test_{number}" for number in range(8)]
TESTS = [*WAITING[:3], *COMPUTING, *WAITING[3:]]


class FakeNode:
    """A worker that runs a test when the test of the scheduler asks for it."""

    def __init__(self, name, *, is_in_background=False):
        self.gateway = SimpleNamespace(id=name)
        self.workerinput = {"is_in_background": is_in_background}
        self.shutting_down = False
        self.queue, self.stolen = [], []

    def send_runtest_some(self, indices):
        self.queue += indices

    def send_steal(self, indices):
        self.queue = [index for index in self.queue if index not in indices]
        self.stolen = [*indices]

    def shutdown(self):
        self.shutting_down = True


class Run:
    def __init__(self, config, tests):
        self.nodes = [FakeNode("gw0"), FakeNode("gw1"), FakeNode("gw2", is_in_background=True)]
        self.scheduling = BackgroundScheduling(config)
        self.scheduling.numnodes = len(self.nodes)
        self.found = {id(node): [] for node in self.nodes}
        for node in self.nodes:
            self.scheduling.add_node(node)
            self.scheduling.add_node_collection(node, tests)
        self.scheduling.schedule()

    def tests_of(self, node):
        return self.found[id(node)]

    def run_next(self, node):
        index = node.queue.pop(0)
        self.tests_of(node).append(self.scheduling.collection[index])
        self.scheduling.mark_test_complete(node, index)
        for victim in self.nodes:
            if victim.stolen:
                stolen, victim.stolen = victim.stolen, []
                self.scheduling.remove_pending_tests_from_node(victim, stolen)

    def run_all(self, nodes):
        while any(node.queue for node in nodes):
            for node in nodes:
                if node.queue:
                    self.run_next(node)


@pytest.fixture
def run(pytestconfig, monkeypatch):
    monkeypatch.setattr(pytestconfig.option, "tx", ["popen"] * 3, raising=False)
    return lambda tests: Run(pytestconfig, tests)


def test_background_gets_what_needs_processor_only(run):
    started = run(TESTS)
    assert [TESTS[index] for index in started.nodes[2].queue] == COMPUTING
    assert sorted(TESTS[index] for node in started.nodes[:2] for index in node.queue) == WAITING


def test_tests_that_background_does_not_reach_run_elsewhere(run):
    started = run(TESTS)
    *others, background = started.nodes
    started.run_all(others)
    started.run_all(started.nodes)
    assert sorted(test for node in started.nodes for test in started.tests_of(node)) == sorted(TESTS)
    assert {*started.tests_of(background)} < {*COMPUTING}
    assert started.scheduling.tests_finished


def test_background_ends_while_others_wait(run):
    started = run(TESTS)
    *others, background = started.nodes
    started.run_all([background])
    assert started.tests_of(background) == COMPUTING
    assert background.shutting_down
    started.run_all(others)
    assert sorted(test for node in others for test in started.tests_of(node)) == WAITING


def test_background_has_no_tests_without_such_ones(run):
    started = run(WAITING)
    assert started.nodes[2].shutting_down
    assert started.nodes[2].queue == []


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        pytest.param("tests/unit/apiserver/test_a.py::test_a", True, id="unit test"),
        pytest.param("tests/unit/apiserver/test_dangerous_mutants.py::test_a", False, id="starts processes"),
        pytest.param("tests/integration/test_a.py::test_a", False, id="integration test"),
    ],
)
def test_folder_decides(test, expected):
    assert needs_processor_only(test) is expected
