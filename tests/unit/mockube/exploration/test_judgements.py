import pytest
from msgspec.structs import replace

from mockube.apimachinery.secrets import MASK
from mockube.exploration.invariants import invariant
from mockube.exploration.judgements import UndisturbedRuns, end_differences, find_problems
from mockube.exploration.plans import UNDISTURBED, Disturbance, plan_of
from mockube.exploration.run_outcome import RunOutcome
from mockube.exploration.trace import Trace
from mockube.operators.end_state import NOTHING_VARIES, NamePattern
from tests.support.instant_clock import InstantClock

OPERATOR = "system:serviceaccount:default:operator"
PERSON = "kubernetes-admin"


def trace(*events):
    """Return a trace of Changes and Requests as the server sends them."""
    found = Trace(clock=InstantClock(), operator=OPERATOR, objects={})
    for event in events:
        (found.add_change if "patch" in event["spec"] or event["spec"].get("type") else found.add_request)(
            event
        )
    return found


def change(type_, name, patch, user=OPERATOR, kind="ConfigMap"):
    about = {"apiVersion": "v1", "kind": kind, "name": name, "namespace": "default"}
    return {"spec": {"revision": 1, "type": type_, "object": about, "author": {"user": user}, "patch": patch}}


def added(name, user=OPERATOR, **fields):
    tree = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        **fields,
    }
    return change("ADDED", name, [{"op": "replace", "path": "", "value": tree}], user)


def replaced(name, path, value, user=OPERATOR):
    return change("MODIFIED", name, [{"op": "replace", "path": path, "value": value}], user)


def request(verb="create", resource="configmaps", code=201, **status):
    spec = {"user": OPERATOR, "verb": verb, "resource": resource, "namespace": "default"}
    return {"spec": spec, "status": {"code": code, **status}}


def found_problems(events, expected=(), invariants=(), writes=5, plan=UNDISTURBED, own=frozenset(), **fields):
    outcome = RunOutcome(plan=plan, trace=trace(*events), **fields)
    reference = UndisturbedRuns(
        trace=trace(*expected), varying=NOTHING_VARIES, user=OPERATOR, writes=writes, own=own
    )
    return find_problems(outcome, reference, invariants)


def problems(*arguments, **fields):
    return [(each.type, each.text) for each in found_problems(*arguments, **fields)]


def test_same_end_is_no_problem():
    assert problems([added("a", data={"x": "1"})], [added("a", data={"x": "1"})]) == []


def test_other_end():
    assert problems([added("a"), added("b")], [added("a")]) == [
        ("end", "ConfigMap b in default is left over")
    ]


def test_field_of_an_object_of_a_controller_is_compared_if_the_operator_writes_it():
    controller = "system:serviceaccount:kube-system:statefulset-controller"
    made = [added("a", controller, data={"size": "1", "node": "x"})]
    written = [*made, replaced("a", "/data/size", "2")]
    assert problems([added("a", controller, data={"size": "1", "node": "y"})], made) == []
    other = [added("a", controller, data={"size": "1", "node": "y"})]
    assert problems(other, written) == [("end", 'ConfigMap a in default differs: data.size: "2" -> "1"')]
    assert problems(written, other) == [("end", 'ConfigMap a in default differs: data.size: "1" -> "2"')]


def test_object_is_not_missing_if_its_resource_was_deleted_before():
    plan = plan_of([Disturbance(action="delete the resource", step=0)])
    outcome = RunOutcome(plan=plan, trace=trace(added("a"), added("c"), change("DELETED", "c", None)))
    reference = UndisturbedRuns(
        trace=trace(added("a"), added("b"), added("c")),
        varying=NOTHING_VARIES,
        user=OPERATOR,
        writes=5,
        ending="delete",
        own=frozenset({("ConfigMap", "default", "a")}),
    )
    texts = [each.text for each in find_problems(outcome, reference, ())]
    assert "ConfigMap c in default is missing" in texts
    assert "ConfigMap b in default is missing" not in texts


def test_problem_has_the_writes_that_show_it():
    foreign = [added("a", PERSON, spec={"size": 1}), replaced("a", "/spec/size", 2)]
    (spec,) = found_problems(foreign, foreign)
    assert [each.type for each in spec.shown_by] == ["MODIFIED"]
    (end,) = found_problems([added("a"), added("b"), replaced("b", "/data", {"x": "1"})], [added("a")])
    assert [each.line() for each in end.shown_by] == [
        "ADDED ConfigMap b in default by the operator",
        'MODIFIED ConfigMap b in default by the operator: data.x: "1"',
    ]


def test_run_that_stops_at_a_step_is_not_compared():
    assert problems([], [added("a")], failed_steps=["step 1: a was not so"]) == [
        ("step", "step 1: a was not so")
    ]


def test_run_that_is_never_quiet_says_what_it_writes():
    events = [request("patch", code=200)] * 3 + [request()]
    assert problems(events, is_quiet=False) == [
        ("never quiet", "it never becomes quiet: 3 times patch of configmaps")
    ]


@pytest.mark.parametrize(
    ("count", "is_loop"), [pytest.param(25, False, id="some"), pytest.param(26, True, id="too many")]
)
def test_hot_loop(count, is_loop):
    found = problems([request("patch", code=200)] * count)
    assert bool(found) is is_loop
    assert not found or found[0][0] == "hot loop"


def test_writes_that_a_disturbance_refuses_are_no_hot_loop():
    assert problems([request("patch", code=401, answeredByFault=True)] * 100) == []


@pytest.mark.parametrize(("began", "is_loop"), [(0.0, False), (1e9, True)])
def test_writes_while_something_is_hidden_are_no_hot_loop(began, is_loop):
    hidden = trace(*[request("patch", code=409)] * 100)
    hidden.hide("fault-1", "configmaps", 1)
    hidden.hidden["fault-1"].began = began
    reference = UndisturbedRuns(trace=trace(), varying=NOTHING_VARIES, user=OPERATOR, writes=5)
    found = find_problems(RunOutcome(plan=UNDISTURBED, trace=hidden), reference, ())
    assert bool(found) is is_loop


def test_invariants_hold_at_each_revision():
    rule = invariant("never-two", ["ConfigMap"], "objects.size() < 2")
    events = [added("a"), added("b"), change("DELETED", "a", None)]
    (found,) = problems(events, [added("b")], [rule])
    assert found[0] == "invariant"
    assert "of ConfigMap b in default" in found[1]


def test_deletion_of_what_others_made():
    deleted = change("DELETED", "a", None)
    assert problems([added("a"), deleted]) == []
    assert problems([added("a", PERSON), deleted]) == [
        ("deletion", "it deletes what it did not make: ConfigMap a in default, made by kubernetes-admin")
    ]


@pytest.mark.parametrize(
    ("deleted_by", "count"),
    [
        pytest.param(PERSON, 0, id="a person deletes it"),
        pytest.param(OPERATOR, 1, id="the operator deletes it"),
    ],
)
def test_removal_of_the_last_finalizer_is_no_deletion(deleted_by, count):
    time = "2026-01-01T00:00:00Z"
    events = [
        added("a", PERSON),
        replaced("a", "/metadata/finalizers", ["example.com/stop"]),
        replaced("a", "/metadata/deletionTimestamp", time, deleted_by),
        change("DELETED", "a", None),
    ]
    assert [type_ for type_, _ in problems(events)] == ["deletion"] * count


@pytest.mark.parametrize(
    ("action", "is_found"),
    [
        pytest.param("crash and stale lists", True, id="with an old cache"),
        pytest.param("edit an owned object", False, id="because somebody has changed it"),
    ],
)
def test_deletion_of_what_is_needed_at_the_end_is_found_if_it_is_one_more_than_undisturbed(action, is_found):
    deletion = change("DELETED", "a", [{"op": "remove", "path": ""}])
    once = [added("a"), deletion, added("a")]
    plan = plan_of([Disturbance(action=action)])
    found = [
        (
            "deletion",
            "it deletes what its resource needs: ConfigMap a in default, twice, and once undisturbed",
        )
    ]
    assert problems([*once, deletion, added("a")], once, plan=plan) == found * is_found
    assert problems(once, once, plan=plan) == []


def test_deletion_with_the_first_resource_is_no_problem_when_a_user_creates_it_anew():
    deletion = change("DELETED", "a", [{"op": "remove", "path": ""}])
    plan = plan_of([Disturbance(action="create anew and stale lists")])
    again = [deletion, added("a")]
    assert problems([added("a"), *again], [added("a")], plan=plan) == []
    assert len(problems([added("a"), *again, *again], [added("a")], plan=plan)) == 1


def test_deletion_of_what_is_not_needed_at_the_end_is_no_problem():
    deletion = change("DELETED", "a", [{"op": "remove", "path": ""}])
    assert problems([added("a"), deletion, added("a"), deletion], [added("a"), deletion]) == []


def test_deletion_of_what_a_built_in_controller_made_for_it():
    made = added("data-shop-0", "system:serviceaccount:kube-system:statefulset-controller")
    assert problems([made, change("DELETED", "data-shop-0", None)]) == []


@pytest.mark.parametrize(
    ("disturbed", "count"),
    [
        pytest.param("ConfigMap/a", 0, id="it"),
        pytest.param("ConfigMap/*", 0, id="random name"),
        pytest.param("ConfigMap/b", 1, id="another"),
    ],
)
def test_deletion_of_what_a_disturbance_made(disturbed, count):
    plan = plan_of([Disturbance(action="delete and create the resource", step=0, object=disturbed)])
    assert len(problems([added("a", PERSON), change("DELETED", "a", None)], plan=plan)) == count


def test_missing_objects_of_the_operator_come_before_those_of_controllers():
    controller = "system:serviceaccount:kube-system:endpoint-controller"
    texts = [text for _, text in problems([], [added("a", controller), added("b")])]
    assert texts == ["ConfigMap b in default is missing", "ConfigMap a in default is missing"]


def test_write_to_a_spec_that_its_user_owns():
    events = [added("a", PERSON, spec={"size": 1}), replaced("a", "/spec/size", 2)]
    (found,) = problems(events, events)[:1]
    assert found == (
        "spec",
        "it writes to a spec that kubernetes-admin owns: /spec/size of ConfigMap a in default",
    )
    status = [added("a", PERSON, status={"size": 1}), replaced("a", "/status/size", 2)]
    assert problems(status, status) == []


@pytest.mark.parametrize(
    ("namespace", "metadata", "is_owned"),
    [
        pytest.param("default", {}, True, id="somebody's"),
        pytest.param("default", {"ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}]}, False, id="a controller's"),
        pytest.param("kube-system", {}, False, id="the cluster's"),
    ],
)  # fmt: skip
def test_write_to_a_spec_that_was_there_before_the_run(namespace, metadata, is_owned):
    named = {"name": "a", "namespace": namespace}
    tree = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**named, **metadata}}
    identity = ("ConfigMap", namespace, "a")
    write = replaced("a", "/spec/size", 2)
    write["spec"]["object"] |= named
    ran = Trace(clock=InstantClock(), operator=OPERATOR, objects={identity: {**tree, "spec": {"size": 1}}})
    ran.add_change(write)
    reference = UndisturbedRuns(trace=ran, varying=NOTHING_VARIES, user=OPERATOR, writes=5, own=frozenset())
    found = find_problems(RunOutcome(plan=UNDISTURBED, trace=ran), reference, ())
    assert [each.text for each in found] == [
        "it writes to a spec that somebody before the run owns: /spec/size of ConfigMap a in default"
    ] * is_owned


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [
        *(pytest.param({}, {"a": value}, 0) for value in ({}, None, "", 0, False, [])),
        pytest.param({"a": "2000m"}, {"a": "2"}, 0, id="the same quantity"),
        pytest.param({"a": 2}, {"a": "2"}, 0, id="the same number as text"),
        pytest.param({"a": 2}, {"a": "3"}, 1, id="another number"),
        pytest.param({"a": True}, {"a": "1"}, 1, id="no number"),
        pytest.param({"a": "2000m"}, {"a": "3"}, 1, id="another quantity"),
        pytest.param({"a": "x"}, {"a": "y"}, 1, id="another text"),
        pytest.param({}, {"a": {"cpu": 1}}, 1, id="a value"),
    ],
)
def test_defaults_that_a_go_client_sends_back_are_no_write_to_a_spec(before, after, count):
    patch = {"op": "replace", "path": "/spec/a", "value": after["a"]}
    if not before:
        patch["op"] = "add"
    events = [added("a", PERSON, spec=before), change("MODIFIED", "a", [patch])]
    assert len(problems(events, events)) == count


def test_deleted_resource_leaves_nothing():
    plan = plan_of([Disturbance(action="delete the resource", step=0)])
    events = [added("site", PERSON), added("child"), change("DELETED", "site", None, PERSON)]
    assert problems(events, events, plan=plan) == [
        ("stays", "ConfigMap child in default stays when its resource is deleted")
    ]
    assert problems(events, events) == []
    gone = [
        *events,
        change("DELETED", "child", None, "system:serviceaccount:kube-system:generic-garbage-collector"),
    ]
    assert problems(gone, gone, plan=plan) == []


@pytest.mark.parametrize(
    ("finalizers", "count"),
    [pytest.param([], 0, id="grace period"), pytest.param(["a/b"], 1, id="finalizer")],
)
def test_object_that_is_being_deleted_stays_only_with_a_finalizer(finalizers, count):
    plan = plan_of([Disturbance(action="delete the resource", step=0)])
    deletion = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": finalizers}
    events = [
        added("site", PERSON),
        added("child", metadata={"name": "child", "namespace": "default", **deletion}),
        change("DELETED", "site", None, PERSON),
    ]
    assert len(problems(events, events, plan=plan)) == count


def test_objects_that_an_operator_makes_for_itself_may_stay():
    plan = plan_of([Disturbance(action="delete the resource", step=0)])
    own = frozenset({("ConfigMap", "default", "operator-config")})
    events = [added("site", PERSON), added("operator-config"), change("DELETED", "site", None, PERSON)]
    assert problems(events, events, plan=plan, own=own) == []
    assert [type_ for type_, _ in problems(events, events, plan=plan)] == ["stays"]


def test_fight():
    turns = [
        replaced("a", "/data/x", value, user)
        for _ in range(4)
        for value, user in (("1", OPERATOR), ("2", PERSON))
    ]
    events = [added("a", data={"x": "2"}), *turns]
    (found,) = problems(events, events)
    assert found[0] == "fight"
    assert "set /data/x of ConfigMap a in default in turn: 8 writes" in found[1]
    few = [added("a", data={"x": "2"}), *turns[:4]]
    assert problems(few, few) == []


def test_request_that_it_may_not_make():
    refused = 'configmaps is forbidden: User "a" cannot create resource "configmaps" in API group ""'
    assert problems([request(code=403, message=refused)]) == [
        ("rights", f"it may not do what it tries: create configmaps in default: {refused}")
    ]
    assert problems([request(code=403, message=refused, answeredByFault=True)]) == []


@pytest.mark.parametrize(
    "message",
    [
        'configmaps "a" is forbidden: unable to create new content in namespace b because it is being terminated',
        'pods "a" is forbidden: exceeded quota: few, requested: pods=1, used: pods=1, limited: pods=1',
        'pods "a" is forbidden: violates PodSecurity "restricted:latest": privileged',
    ],
)
def test_refusal_for_another_reason_than_rights(message):
    assert problems([request(code=403, message=message)]) == []


def test_crashes_that_differ_by_numbers_are_one_problem():
    crashes = [f"panic: runtime error: index out of range [{number}] with length 2" for number in (3, 4)]
    assert problems([], crashes=crashes) == [
        ("exits", "it crashes: panic: runtime error: index out of range [4] with length 2")
    ]


def test_exits_again_and_again():
    assert problems([], exits=["the operator exits with code 1"] * 4) == []
    assert problems([], exits=["the operator exits with code 1"] * 5) == [
        ("exits", "it exits again and again: the operator exits with code 1")
    ]


def test_ignored_term():
    assert problems([], ignored_term=True) == [("SIGTERM", "it does not end by SIGTERM")]


def ended_with_secret(value):
    """Return a trace at whose end a Secret has a value, which the Change masks."""
    masked = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "default"}}
    found = trace(
        change(
            "ADDED", "a", [{"op": "add", "path": "", "value": {**masked, "data": {"k": MASK}}}], kind="Secret"
        )
    )
    found.add_secrets([{**masked, "data": {"k": value}}])
    return found


@pytest.mark.parametrize(
    ("value", "found"),
    [
        pytest.param("b25l", [], id="same"),
        pytest.param("dHdv", [f'Secret a in default differs: data.k: "{MASK}" -> "{MASK}"'], id="another"),
    ],
)
def test_another_value_of_a_secret_is_found_and_not_shown(value, found):
    reference = UndisturbedRuns(
        trace=ended_with_secret("b25l"), varying=NOTHING_VARIES, user=OPERATOR, writes=1
    )
    outcome = RunOutcome(plan=UNDISTURBED, trace=ended_with_secret(value))
    assert [each.text for each in find_problems(outcome, reference, ())] == found


def test_run_that_was_cut_short_shows_only_its_deletions():
    deleted = [added("a", PERSON), change("DELETED", "a", None)]
    whole = problems(deleted, [added("b")], failed_steps=["step 2: b was not so"])
    assert [kind for kind, _ in whole] == ["step", "deletion"]
    assert problems(deleted, [added("b")], failed_steps=["step 2: b was not so"], is_cut_short=True) == [
        ("deletion", "it deletes what it did not make: ConfigMap a in default, made by kubernetes-admin")
    ]


@pytest.mark.parametrize(
    ("events", "missing"),
    [
        pytest.param([added("a-1")], [], id="it had made one of two"),
        pytest.param(
            [added("a-1"), added("a-2"), change("DELETED", "a-2", None)], ["a-*"], id="one was deleted"
        ),
    ],
)
def test_objects_of_a_role_are_not_missing_if_all_that_were_made_are_there(events, missing):
    plan = plan_of([Disturbance(action="delete the resource", step=0)])
    varying = replace(NOTHING_VARIES, patterns=[NamePattern("ConfigMap", "a-", "")])
    reference = UndisturbedRuns(
        trace=trace(added("a-3"), added("a-4")), varying=varying, user=OPERATOR, writes=5, ending="delete"
    )
    found = end_differences(RunOutcome(plan=plan, trace=trace(*events)).trace, reference)
    assert [each.role[2] for each in found] == missing
