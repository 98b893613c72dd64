import pytest

from mockube.exploration.invariants import LIBRARY, InvalidInvariant, invariant, read_invariant


def holds(name, after, before=None, objects=None):
    found = [after] if objects is None and after is not None else objects or []
    return read_invariant(name).problem(after, before, found) == ""


def set_of(replicas):
    return {"metadata": {"name": "db", "uid": "1"}, "spec": {"replicas": replicas}}


def pod(name, index, owner="1"):
    metadata = {
        "name": name,
        "labels": {"apps.kubernetes.io/pod-index": index},
        "ownerReferences": [{"uid": owner}],
    }
    return {"metadata": metadata}


def test_expression_has_the_object_and_what_it_was():
    rule = invariant("grows", ["ConfigMap"], "oldObject == null || object.data.n >= oldObject.data.n")
    assert rule.problem({"data": {"n": 2}}, {"data": {"n": 1}}, []) == ""
    assert rule.problem({"data": {"n": 1}}, {"data": {"n": 2}}, []).startswith("grows does not hold: ")
    assert rule.problem({}, {"data": {"n": 2}}, []) == "grows cannot be evaluated: no such key: data"


@pytest.mark.parametrize(
    ("kinds", "kind", "applies"),
    [
        pytest.param(["*"], "Pod", True, id="all"),
        pytest.param(["Deployment"], "Deployment.apps", True, id="without its group"),
        pytest.param(["Deployment.apps"], "Deployment.apps", True, id="with its group"),
        pytest.param(["Pod"], "PodTemplate", False, id="another"),
    ],
)
def test_kinds(kinds, kind, applies):
    assert invariant("a", kinds, "true").applies_to(kind) is applies


def test_quorum():
    assert holds("quorum-is-kept", set_of(3), set_of(5))
    assert not holds("quorum-is-kept", set_of(2), set_of(5))
    assert holds("quorum-is-kept", None, set_of(5))


def test_bound_claims():
    bound = {"metadata": {}, "status": {"phase": "Bound"}}
    assert holds("bound-claims-are-kept", bound)
    assert not holds("bound-claims-are-kept", None, bound)
    assert holds("bound-claims-are-kept", None, {"metadata": {}, "status": {"phase": "Lost"}})


def test_ordinals():
    pods = [pod("a", "0"), pod("b", "1"), pod("c", "0", owner="2")]
    assert holds("one-pod-for-each-ordinal", pods[0], objects=pods)
    assert not holds("one-pod-for-each-ordinal", pods[0], objects=[*pods, pod("d", "0")])


def changed(name, **fields):
    """The name of an invariant, and an object before and after a change of fields, such as spec__replicas."""
    both = []
    for index in (0, 1):
        tree = {"metadata": {"name": "a", "uid": "1"}}
        for path, values in fields.items():
            *parents, last = path.split("__")
            place = tree
            for parent in parents:
                place = place.setdefault(parent, {})
            place[last] = values[index]
        both.append(tree)
    return pytest.param(name, *both, id=name)


OWNERS = [{"uid": "1"}]


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        changed("replicas-are-not-removed", spec__replicas=(2, 0)),
        changed("volume-claims-of-pods-exist", spec__volumeClaimTemplates=([{}], [])),
        changed("observed-generation-grows", status__observedGeneration=(2, 1)),
        changed(
            "observed-generation-is-real", metadata__generation=(1, 1), status__observedGeneration=(1, 2)
        ),
        changed("owners-are-kept", metadata__ownerReferences=(OWNERS, [])),
        changed("secrets-keep-their-type", type=("Opaque", "kubernetes.io/tls")),
        changed("certificates-keep-their-secret", spec__secretName=("a", "b")),
        changed("finalizers-go-at-the-end", metadata__finalizers=(["example.com/a"], [])),
        changed("conditions-are-unique", status__conditions=([{"type": "Ready"}], [{"type": "Ready"}] * 2)),
    ],
)
def test_change_that_an_invariant_forbids(name, before, after):
    assert holds(name, before, before)
    assert not holds(name, after, before)


def test_object_that_is_deleted_loses_owners_and_finalizers():
    metadata = {"name": "a", "uid": "1"}
    begun = {"metadata": {**metadata, "finalizers": ["example.com/a"], "ownerReferences": OWNERS}}
    ended = {"metadata": {**metadata, "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert holds("finalizers-go-at-the-end", ended, begun)
    assert holds("owners-are-kept", ended, begun)


def test_new_object_of_the_same_name_has_a_history_of_its_own():
    old = {"metadata": {"name": "a", "uid": "1"}, "status": {"observedGeneration": 5}}
    new = {"metadata": {"name": "a", "uid": "2"}, "status": {"observedGeneration": 1}}
    assert holds("observed-generation-grows", new, old)


@pytest.mark.parametrize("name", LIBRARY)
def test_library_holds_for_a_plain_object(name):
    plain = {"metadata": {"name": "a", "uid": "1", "generation": 1}}
    assert holds(name, plain)
    assert holds(name, plain, plain)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param(3, "must be a map or the name of one of the library, not 3", id="number"),
        pytest.param({"rule": "true"}, 'unknown field "rule"', id="unknown field"),
        pytest.param({}, "expression: must be a text in CEL", id="no expression"),
        pytest.param({"expression": "1"}, "expression: must be a bool", id="no bool"),
        pytest.param({"expression": "true", "kinds": "Pod"}, "kinds: must be a list of kinds", id="kinds"),
    ],
)
def test_mistakes(value, message):
    with pytest.raises(InvalidInvariant, match=message):
        read_invariant(value)
