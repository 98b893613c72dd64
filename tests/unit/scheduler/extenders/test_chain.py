"""Several extenders one after the other: which are called for a pod, and what their results and failures lead to."""

import pytest

from mockube.scheduler.choice import FeasibleNodes
from mockube.scheduler.config.extender_access import access_of
from mockube.scheduler.config.types import Extender, ExtenderManagedResource
from mockube.scheduler.extenders.chain import Extenders
from mockube.scheduler.extenders.messages import ExtenderError
from mockube.scheduler.filters.filter import Rejection
from mockube.scheduler.preemption import Candidate, Preemption
from tests.support.controllers.scheduler_objects import info, node, pod, snapshot

FILTER, SCORE = {"filter_verb": "filter"}, {"prioritize_verb": "prioritize", "weight": 2}
PREEMPT, BIND = {"preempt_verb": "preempt"}, {"bind_verb": "bind"}
NAMES, IGNORABLE = {"node_cache_capable": True}, {"ignorable": True}
OTHERS = {"managed_resources": (ExtenderManagedResource(name="e.com/x"),)}
"""What makes an extender no concern of the pod."""
WEB = info(pod())
DOWN = ExtenderError("down")
STATE = snapshot([node("a"), node("b")], [pod("low", nodeName="a")])
HOT = Rejection(("hot",), plugin="Extender")
HOTTER = Rejection(("hotter",), is_unresolvable=True, plugin="Extender")
NO_REASON = Rejection((), is_unresolvable=True, plugin="Extender")


class Chain(Extenders):
    """Extenders whose results are given: trees, or errors that are raised."""

    def __init__(self, *rows):
        self.calls = []
        super().__init__(
            [access_of(Extender(url_prefix=f"http://{index}", **row)) for index, (row, _) in enumerate(rows)]
        )
        results = {f"http://{index}": result for index, (_, result) in enumerate(rows)}
        for extender in self._extenders:
            extender._send = self._sender(extender.name, results[extender.name])

    def _sender(self, name, result):
        async def send(verb, args):
            self.calls.append((name.removeprefix("http://"), verb))
            self.sent = args
            if isinstance(result, Exception):
                raise result
            return result

        return send


async def filtered(*rows, found=None):
    """Return the names of the nodes that extenders accept, and the rejections of the others."""
    chain = Chain(*rows)
    result = await chain.filter(WEB, found or FeasibleNodes(STATE.nodes), STATE)
    return [one.name for one in result.feasible], result.rejections


async def test_nodes_are_those_that_all_extenders_accept():
    first = {**FILTER, **NAMES}, {"NodeNames": ["b", "a"]}
    second = {**FILTER, **NAMES}, {"NodeNames": ["b"], "FailedNodes": {"a": "hot"}}
    assert await filtered(first, second) == (["b"], {"a": HOT})


async def test_nodes_without_a_reason_are_rejected_for_good_if_none_is_left():
    found = FeasibleNodes(STATE.nodes[:1], {"b": HOT})
    assert await filtered((FILTER, {}), found=found) == ([], {"a": NO_REASON, "b": HOT})
    failed = {"FailedAndUnresolvableNodes": {"a": "hotter"}}
    assert await filtered((FILTER, failed)) == ([], {"a": HOTTER, "b": NO_REASON})


@pytest.mark.parametrize(
    ("fields", "result", "names"),
    [
        pytest.param(NAMES, {"NodeNames": ["a"], "Nodes": {"items": [node("b")]}}, ["a"], id="names"),
        pytest.param(NAMES, {"NodeNames": []}, [], id="no names"),
        pytest.param(NAMES, {"Nodes": {"items": [node("b")]}}, ["b"], id="nodes instead of names"),
        pytest.param({}, {"NodeNames": ["a"], "Nodes": {"items": [node("b")]}}, ["b"], id="nodes"),
        pytest.param({}, {"NodeNames": ["a"]}, [], id="names instead of nodes"),
    ],
)
async def test_extender_returns_names_only_if_it_caches_nodes(fields, result, names):
    assert (await filtered(({**FILTER, **fields}, result)))[0] == names


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ({"Error": "no"}, "no"),
        (
            {"NodeNames": ["c"]},
            'extender "http://0" claims a filtered node "c" which is not found in the input node list',
        ),
        (DOWN, "down"),
    ],
)
async def test_failure_of_a_filter_is_an_error_unless_it_is_ignorable(result, message):
    with pytest.raises(ExtenderError) as caught:
        await filtered(({**FILTER, **NAMES}, result))
    assert str(caught.value) == message
    assert (await filtered(({**FILTER, **NAMES, **IGNORABLE}, result)))[0] == ["a", "b"]


async def test_ignorable_extenders_are_called_last_and_those_of_no_concern_never():
    accepting = {"NodeNames": ["a"]}
    fields = {**FILTER, **NAMES}
    chain = Chain(
        ({**fields, **IGNORABLE}, accepting), (fields, accepting), ({**fields, **OTHERS}, DOWN), (SCORE, DOWN)
    )
    await chain.filter(WEB, FeasibleNodes(STATE.nodes), STATE)
    assert chain.calls == [("1", "filter"), ("0", "filter")]


async def test_no_extender_is_called_once_no_node_is_left():
    fields = {**FILTER, **NAMES}
    chain = Chain((fields, {"NodeNames": []}), (fields, DOWN))
    await chain.filter(WEB, FeasibleNodes(STATE.nodes), STATE)
    assert chain.calls == [("0", "filter")]


@pytest.mark.parametrize(
    ("fields", "concerns"),
    [
        (FILTER, True),
        (SCORE, True),
        (PREEMPT, False),
        (BIND, False),
        ({**FILTER, **OTHERS}, False),
    ],
)
def test_extenders_that_filter_or_score_concern_a_decision(fields, concerns):
    assert Chain((fields, {})).concerns(WEB) is concerns


async def test_scores_of_extenders_are_weighted_and_added():
    first = SCORE, [{"Host": "a", "Score": 3}, {"Host": "b", "Score": 1}, {"Host": "b", "Score": 1}]
    second = {**SCORE, "weight": 1}, [{"Host": "a", "Score": 2}]
    chain = Chain(first, second, (SCORE, DOWN), ({**SCORE, **OTHERS}, first[1]), (FILTER, DOWN))
    assert await chain.scores(WEB, STATE.nodes) == {"a": 3 * 20 + 2 * 10, "b": 2 * 20}
    assert {number for number, _ in chain.calls} == {"0", "1", "2"}
    assert chain.sent["NodeNames"] is None
    named = Chain(({**SCORE, **NAMES}, []))
    assert await named.scores(WEB, STATE.nodes) == {}
    assert named.sent["NodeNames"] == ["a", "b"]


VICTIM = STATE.nodes[0].pods["low"]
CANDIDATES = Preemption(
    candidates=[Candidate(node=name, victims=[VICTIM], pdb_violations=0) for name in "ab"]
)


def victims(**pods):
    by_node = {
        name: {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": 1} for name, uids in pods.items()
    }
    return {"NodeNameToMetaVictims": by_node}


async def preempted(*rows):
    """Return the nodes and violations of the candidates that extenders accept, and the problem if there is one."""
    found = await Chain(*rows).process_preemption(WEB, CANDIDATES, STATE)
    return [(one.node, one.pdb_violations) for one in found.candidates], found.problem, found.is_error


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        pytest.param([(PREEMPT, victims(a=["low"]))], ([("a", 1)], "", False), id="one is left"),
        pytest.param(
            [(PREEMPT, victims())], ([], "no candidate node for preemption", False), id="none is left"
        ),
        pytest.param(
            [(PREEMPT, victims()), (PREEMPT, DOWN)],
            ([], "no candidate node for preemption", False),
            id="nothing for the second one",
        ),
        pytest.param([(PREEMPT, DOWN)], ([], "down", True), id="failure"),
        pytest.param(
            [({**PREEMPT, **IGNORABLE}, DOWN)], ([("a", 0), ("b", 0)], "", False), id="ignored failure"
        ),
        pytest.param(
            [({**PREEMPT, **OTHERS}, DOWN), (FILTER, DOWN)],
            ([("a", 0), ("b", 0)], "", False),
            id="those of no concern",
        ),
        pytest.param(
            [(PREEMPT, victims(c=["low"]))],
            ([], 'nodeinfo not found for node name "c"', True),
            id="unknown node",
        ),
        pytest.param(
            [(PREEMPT, victims(a=["x"]))],
            (
                [],
                (
                    "extender: http://0 claims to preempt pod (UID: &{x}) on node: a, "
                    "but the pod is not found on that node"
                ),
                True,
            ),
            id="unknown pod",
        ),
        pytest.param(
            [(PREEMPT, victims(a=[]))],
            ([], 'expected at least one victim pod on node "a"', True),
            id="no victims",
        ),
        pytest.param(
            [({**PREEMPT, **IGNORABLE}, victims(a=[], b=[]))],
            ([], "no candidate node for preemption", False),
            id="no victims of an ignorable one",
        ),
    ],
)
async def test_extenders_choose_candidates_and_victims(rows, expected):
    assert await preempted(*rows) == expected


@pytest.mark.parametrize(
    ("rows", "has_binder", "outcome"),
    [
        pytest.param([(BIND, {})], True, True, id="bound"),
        pytest.param([(BIND, {"Error": "no"})], True, "no", id="refused"),
        pytest.param([(BIND, DOWN)], True, "down", id="failed"),
        pytest.param([({**BIND, **IGNORABLE}, DOWN)], True, False, id="ignored failure"),
        pytest.param([({**BIND, **OTHERS}, DOWN)], False, False, id="of no concern"),
        pytest.param([(FILTER, DOWN)], False, False, id="without binder"),
        pytest.param([(FILTER, DOWN), (BIND, {})], True, True, id="the second one"),
    ],
)
async def test_extender_binds_a_pod(rows, has_binder, outcome):
    chain = Chain(*rows)
    assert chain.has_binder(WEB) is has_binder
    if isinstance(outcome, str):
        with pytest.raises(ExtenderError, match=outcome):
            await chain.bind(WEB, "a")
    else:
        assert await chain.bind(WEB, "a") is outcome


async def test_extenders_without_connection_are_closed():
    await Chain((FILTER, {}), (FILTER, {})).close()
