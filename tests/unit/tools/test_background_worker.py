"""Workers with a purpose get the tests for it, and the others take over what they do not reach."""

from types import SimpleNamespace

import pytest

from tests.support.background_worker import BACKGROUND, GENERAL, WAITING, PurposeScheduling, purpose_of

OTHERS = [
    f"tests/cli/test_{module}.py::test_{number}" for module in ("up", "run", "lint") for number in range(3)
]
COMPUTING = [f"tests/property/test_patterns.py::test_{number}" for number in range(8)]
CONVERSATIONS = [f"tests/conformance/test_conversations.py::test_{number}" for number in range(4)]
TESTS = [*OTHERS[:3], *COMPUTING, *CONVERSATIONS, *OTHERS[3:]]


class FakeNode:
    """A worker that runs a test when the test of the scheduler asks for it."""

    def __init__(self, name, purpose=GENERAL):
        self.gateway = SimpleNamespace(id=name)
        self.workerinput = {"purpose": purpose}
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
        self.nodes = [FakeNode("gw0"), FakeNode("gw1"), FakeNode("gw2", WAITING), FakeNode("gw3", BACKGROUND)]
        self.scheduling = PurposeScheduling(config)
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
    monkeypatch.setattr(pytestconfig.option, "tx", ["popen"] * 4, raising=False)
    return lambda tests: Run(pytestconfig, tests)


def queued(node):
    return [TESTS[index] for index in node.queue]


def test_workers_get_the_tests_for_their_purpose(run):
    *others, waiting, background = run(TESTS).nodes
    assert queued(background) == COMPUTING
    assert queued(waiting) == CONVERSATIONS
    assert {test for node in others for test in queued(node)} < {*OTHERS}


def test_workers_take_one_module_after_the_other(run):
    started = run(TESTS)
    first, second, *_ = started.nodes
    assert [queued(first), queued(second)] == [OTHERS[:3], OTHERS[3:6]]
    for _ in range(2):
        started.run_next(second)
    assert queued(second) == OTHERS[5:]
    assert len(first.queue) == 3


def test_tests_that_workers_with_a_purpose_do_not_reach_run_elsewhere(run):
    started = run(TESTS)
    *others, _, background = started.nodes
    started.run_all(others)
    started.run_all(started.nodes)
    assert sorted(test for node in started.nodes for test in started.tests_of(node)) == sorted(TESTS)
    assert {*started.tests_of(background)} < {*COMPUTING}
    assert started.scheduling.tests_finished


def test_worker_of_waiting_tests_becomes_a_general_one(run):
    started = run(TESTS)
    *others, waiting, background = started.nodes
    started.run_all([waiting, background])
    assert started.tests_of(background) == COMPUTING
    assert background.shutting_down
    assert started.tests_of(waiting)[: len(CONVERSATIONS)] == CONVERSATIONS
    started.run_all(started.nodes)
    general = [test for node in (*others, waiting) for test in started.tests_of(node)]
    assert sorted(general) == sorted([*OTHERS, *CONVERSATIONS])
    assert {*started.tests_of(waiting)} & {*OTHERS}


def test_workers_with_a_purpose_have_no_tests_without_such_ones(run):
    *_, waiting, background = run(OTHERS).nodes
    assert (background.shutting_down, background.queue) == (True, [])
    assert len(waiting.queue) == 3


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        pytest.param("tests/unit/apiserver/test_a.py::test_a", BACKGROUND, id="unit test"),
        pytest.param(
            "tests/unit/apiserver/test_dangerous_mutants.py::test_a", GENERAL, id="starts processes"
        ),
        pytest.param("tests/integration/test_a.py::test_a", GENERAL, id="integration test"),
        pytest.param("tests/conformance/test_conversations.py::test_a[api/crd]", WAITING, id="mostly waits"),
        pytest.param("tests/docs/test_pages.py::test_a[README.md]", WAITING, id="page"),
        pytest.param("tests/deploy/test_processes.py::test_killed_servers", GENERAL, id="another test there"),
    ],
)
def test_folder_or_module_decides(test, expected):
    assert purpose_of(test) == expected
