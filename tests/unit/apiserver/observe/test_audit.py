"""The audit log: which rule decides, and what a line says."""

import orjson
import pytest

from apimachinery.chance import SeededChance
from apimachinery.clock import SteppedClock
from apiserver.http.requestinfo import parse
from apiserver.observe.audit import Audit
from apiserver.observe.audit_policy import EVERYTHING, BadPolicy, Level, read
from apiserver.rest.call import User

ALICE = User(name="alice", uid="1", groups=("dev", "system:authenticated"))
POD = "/api/v1/namespaces/a/pods/p"


def policy(tmp_path, *rules, **rest):
    path = tmp_path / "policy.yaml"
    path.write_bytes(
        orjson.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules, **rest})
    )
    return read(path)


@pytest.mark.parametrize(
    ("rule", "method", "path", "fits"),
    [
        pytest.param({}, "GET", POD, True, id="everything"),
        pytest.param({"users": ["alice"]}, "GET", POD, True, id="a user"),
        pytest.param({"users": ["bob"]}, "GET", POD, False, id="another user"),
        pytest.param({"userGroups": ["dev"]}, "GET", POD, True, id="a group"),
        pytest.param({"verbs": ["get"]}, "GET", POD, True, id="a verb"),
        pytest.param({"verbs": ["list"]}, "GET", POD, False, id="another verb"),
        pytest.param({"namespaces": ["a"]}, "GET", POD, True, id="a namespace"),
        pytest.param({"namespaces": ["b"]}, "GET", POD, False, id="another namespace"),
        pytest.param({"resources": [{"group": ""}]}, "GET", POD, True, id="a group of resources"),
        pytest.param({"resources": [{"group": "apps"}]}, "GET", POD, False, id="another group of resources"),
        pytest.param(
            {"resources": [{"group": "", "resources": ["pods"]}]}, "GET", POD, True, id="a resource"
        ),
        pytest.param(
            {"resources": [{"group": "", "resources": ["pods"]}]},
            "GET",
            f"{POD}/log",
            False,
            id="not its subresource",
        ),
        pytest.param(
            {"resources": [{"group": "", "resources": ["pods/*"]}]},
            "GET",
            f"{POD}/log",
            True,
            id="its subresources",
        ),
        pytest.param(
            {"resources": [{"group": "", "resources": ["*/log"]}]},
            "GET",
            f"{POD}/log",
            True,
            id="anybody's log",
        ),
        pytest.param(
            {"resources": [{"group": "", "resources": ["pods"], "resourceNames": ["q"]}]},
            "GET",
            POD,
            False,
            id="a name",
        ),
        pytest.param({"nonResourceURLs": ["/healthz*"]}, "GET", "/healthz/ping", True, id="a URL"),
        pytest.param({"nonResourceURLs": ["/healthz"]}, "GET", POD, False, id="a URL that is no resource"),
        pytest.param({"resources": [{"group": ""}]}, "GET", "/version", False, id="a resource that is a URL"),
    ],
)
def test_rules(tmp_path, rule, method, path, fits):
    found = policy(tmp_path, rule | {"level": "Request"}).verdict(ALICE, parse(method, path, watch=False))
    assert found.level is (Level.REQUEST if fits else Level.NONE)


def test_the_first_rule_that_fits_decides(tmp_path):
    rules = policy(tmp_path, {"level": "None", "users": ["alice"]}, {"level": "Metadata"})
    info = parse("GET", POD, watch=False)
    assert rules.verdict(ALICE, info).level is Level.NONE
    assert rules.verdict(User(name="bob"), info).level is Level.METADATA


@pytest.mark.parametrize("text", [b"[]", b"kind: Pod", b"kind: Policy\nrules: [{level: All}]", b"a: b: c"])
def test_what_is_no_policy_is_refused_by_name(tmp_path, text):
    (tmp_path / "policy.yaml").write_bytes(text)
    with pytest.raises(BadPolicy, match=r"policy\.yaml"):
        read(tmp_path / "policy.yaml")


def lines(path):
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def test_a_line_says_who_did_what_and_how_it_ended(tmp_path):
    clock = SteppedClock()
    audit = Audit(tmp_path / "audit.log", EVERYTHING, clock=clock, chance=SeededChance())
    request = audit.receive(POD, "127.0.0.1", "kubectl/1", ALICE, parse("DELETE", POD, watch=False))
    clock.advance(1.5)
    audit.complete(request, 200)
    audit.close()
    (line,) = lines(tmp_path / "audit.log")
    assert (line["kind"], line["apiVersion"], line["level"]) == ("Event", "audit.k8s.io/v1", "Metadata")
    assert (line["stage"], line["verb"], line["responseStatus"]["code"]) == (
        "ResponseComplete",
        "delete",
        200,
    )
    assert line["user"] == {"username": "alice", "uid": "1", "groups": ["dev", "system:authenticated"]}
    assert line["objectRef"] == {"resource": "pods", "namespace": "a", "name": "p", "apiVersion": "v1"}
    assert line["requestReceivedTimestamp"] == "2030-01-01T00:00:00.000000Z"
    assert line["stageTimestamp"] == "2030-01-01T00:00:01.500000Z"


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        pytest.param(
            orjson.dumps({"kind": "Status", "status": "Failure", "message": "no", "reason": "Forbidden"}),
            {"status": "Failure", "message": "no", "reason": "Forbidden"},
            id="a Status",
        ),
        pytest.param(b"[-]etcd failed", {}, id="a page"),
        pytest.param(b"[]", {}, id="something else"),
    ],
)
def test_a_refusal_is_told_in_the_servers_words(tmp_path, answer, said):
    audit = Audit(tmp_path / "audit.log", EVERYTHING, clock=SteppedClock(), chance=SeededChance())
    request = audit.receive(POD, "", "", ALICE, parse("GET", POD, watch=False))
    audit.complete(request, 403, answer=answer)
    audit.close()
    (line,) = lines(tmp_path / "audit.log")
    assert line["responseStatus"] == {"metadata": {}, "code": 403} | said


def test_stages_are_left_out_and_bodies_shown_as_the_policy_says(tmp_path):
    rules = policy(
        tmp_path, {"level": "RequestResponse"}, omitStages=["RequestReceived"], omitManagedFields=True
    )
    audit = Audit(tmp_path / "audit.log", rules, clock=SteppedClock(), chance=SeededChance())
    request = audit.receive(POD, "", "", ALICE, parse("PUT", POD, watch=False))
    answer = orjson.dumps({"metadata": {"name": "p", "managedFields": [{}]}})
    audit.complete(request, 200, body=b'{"a":1}', answer=answer)
    audit.close()
    (line,) = lines(tmp_path / "audit.log")
    assert (line["requestObject"], line["responseObject"]) == ({"a": 1}, {"metadata": {"name": "p"}})
