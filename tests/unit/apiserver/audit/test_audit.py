"""The audit log: which rule matches, what a line contains, and the mode of the file."""

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pytest

from mockube.apiserver.audit.audit import MAX_USER_AGENT, NO_RESPONSE, Audit, AuditedResponse, BadAuditLog
from mockube.apiserver.audit.policy import DEFAULT_POLICY, BadPolicy, Level, read
from mockube.apiserver.authz.chain import Decision
from mockube.apiserver.request_info import RequestInfo, parse
from mockube.apiserver.user import ImpersonatedUser, User
from mockube.component_base.clock import SteppedClock

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
            id="wildcard subresource log",
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
def test_audit_rules_match_requests(tmp_path, rule, method, path, fits):
    found = policy(tmp_path, rule | {"level": "Request"}).decide(ALICE, parse(method, path, watch=False))
    assert found.level is (Level.REQUEST if fits else Level.NONE)


def test_first_matching_audit_rule_decides_level(tmp_path):
    rules = policy(tmp_path, {"level": "None", "users": ["alice"]}, {"level": "Metadata"})
    info = parse("GET", POD, watch=False)
    assert rules.decide(ALICE, info).level is Level.NONE
    assert rules.decide(User(name="bob"), info).level is Level.METADATA


@pytest.mark.parametrize("text", [b"[]", b"kind: Pod", b"kind: Policy\nrules: [{level: All}]", b"a: b: c"])
def test_invalid_audit_policy_is_refused(tmp_path, text):
    (tmp_path / "policy.yaml").write_bytes(text)
    with pytest.raises(BadPolicy, match=r"policy\.yaml"):
        read(tmp_path / "policy.yaml")


@dataclass
class AuditedRequest:
    """A request as the server passes it to the audit log."""

    info: RequestInfo
    audit_id: str = "id"
    uri: str = POD
    source: str = "127.0.0.1"
    user_agent: str = "kubectl/1"
    authenticated: User = ALICE
    impersonated: ImpersonatedUser | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)
    decision: tuple[Decision, str] | None = (Decision.ALLOW, "")

    @property
    def name(self):
        return self.info.name


def arrival_of(method, path=POD, **rest):
    return AuditedRequest(parse(method, path, watch=False), **rest)


OK = AuditedResponse(200)


def logged_line(tmp_path, arrival, outcome=OK):
    """Return the only line that a request adds to the log."""
    audit = Audit(tmp_path / "audit.log", DEFAULT_POLICY, clock=SteppedClock())
    audit.complete(audit.receive(arrival), arrival, outcome)
    audit.close()
    (line,) = lines(tmp_path / "audit.log")
    return line


def lines(path):
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def test_audit_line_has_user_verb_object_and_code(tmp_path):
    clock = SteppedClock()
    audit = Audit(tmp_path / "audit.log", DEFAULT_POLICY, clock=clock)
    arrival = arrival_of("DELETE")
    request = audit.receive(arrival)
    clock.advance(1.5)
    audit.complete(request, arrival, OK)
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


def test_audit_line_of_refusal_has_servers_message(tmp_path):
    status = {"kind": "Status", "status": "Failure", "message": "no", "reason": "Forbidden"}
    line = logged_line(tmp_path, arrival_of("GET"), AuditedResponse(403, orjson.dumps(status)))
    assert line["responseStatus"] == {
        "metadata": {}, "status": "Failure", "message": "no", "reason": "Forbidden", "code": 403,
    }  # fmt: skip


def test_client_that_left_has_a_success_without_response(tmp_path):
    line = logged_line(tmp_path, arrival_of("GET"), NO_RESPONSE)
    assert line["responseStatus"] == {
        "metadata": {}, "status": "Success", "message": "Connection closed early", "code": 200,
    }  # fmt: skip


def test_start_of_long_running_request_is_logged_once(tmp_path):
    audit = Audit(tmp_path / "audit.log", DEFAULT_POLICY, clock=SteppedClock())
    arrival = arrival_of("GET", f"{POD}/log")
    request = audit.receive(arrival, is_long_running=True)
    audit.start(request, arrival, OK)
    audit.start(request, arrival, OK)
    audit.complete(request, arrival, OK)
    audit.complete(audit.receive(arrival, is_long_running=True), arrival, OK)
    audit.complete(audit.receive(arrival), arrival, OK)
    audit.close()
    stages = [line["stage"] for line in lines(tmp_path / "audit.log")]
    started = ["ResponseStarted", "ResponseComplete"]
    assert stages == [*started, *started, "ResponseComplete"]


def test_omitted_stages_and_managed_fields_follow_policy(tmp_path):
    rules = policy(
        tmp_path, {"level": "RequestResponse"}, omitStages=["RequestReceived"], omitManagedFields=True
    )
    audit = Audit(tmp_path / "audit.log", rules, clock=SteppedClock())
    arrival = arrival_of("PUT")
    request = audit.receive(arrival)
    owned = {"metadata": {"name": "p", "managedFields": [{}]}}
    table = {"columnDefinitions": [], "rows": [{"object": owned}, {"object": None}]}
    request.set_object(owned)
    audit.complete(request, arrival, AuditedResponse(200, object=orjson.dumps({"items": [owned]})))
    audit.complete(request, arrival, AuditedResponse(200, object=orjson.dumps(table)))
    audit.close()
    bare = {"metadata": {"name": "p"}}
    listed, shown = lines(tmp_path / "audit.log")
    assert (listed["requestObject"], listed["responseObject"]) == (bare, {"items": [bare]})
    assert shown["responseObject"]["rows"] == [{"object": bare}, {"object": None}]


@pytest.mark.parametrize(
    ("patch", "shown"),
    [(b'{"a":1}', {"requestObject": {"a": 1}}), (b"a: 1", {})],
    ids=["JSON", "YAML"],
)
def test_patch_is_logged_if_it_is_json(tmp_path, patch, shown):
    audit = Audit(
        tmp_path / "audit.log",
        policy(tmp_path, {"level": "Request"}, omitStages=["RequestReceived"]),
        clock=SteppedClock(),
    )
    arrival = arrival_of("PATCH")
    request = audit.receive(arrival)
    request.set_patch(patch)
    audit.complete(request, arrival, OK)
    audit.close()
    (line,) = lines(tmp_path / "audit.log")
    assert {name: value for name, value in line.items() if name == "requestObject"} == shown


def test_event_is_one_line_whatever_the_object_has(tmp_path):
    audit = Audit(
        tmp_path / "audit.log", policy(tmp_path, {"level": "RequestResponse"}), clock=SteppedClock()
    )
    arrival = arrival_of("GET")
    audit.complete(audit.receive(arrival), arrival, AuditedResponse(200, object=b'{\n"a": 1\n}'))
    audit.close()
    assert [line.get("responseObject") for line in lines(tmp_path / "audit.log")] == [None, {"a": 1}]


def test_audit_line_has_impersonated_and_real_user(tmp_path):
    bob = ImpersonatedUser(
        user=User(name="bob", groups=("system:authenticated",)), constraint="impersonate:user-info"
    )
    line = logged_line(tmp_path, arrival_of("GET", impersonated=bob))
    assert line["user"]["username"] == "alice"
    assert line["impersonatedUser"] == {"username": "bob", "groups": ["system:authenticated"]}
    assert line["authenticationMetadata"] == {"impersonationConstraint": "impersonate:user-info"}


@pytest.mark.parametrize(
    ("decision", "annotations"),
    [
        pytest.param(
            (Decision.ALLOW, "RBAC: yes"),
            {"authorization.k8s.io/decision": "allow", "authorization.k8s.io/reason": "RBAC: yes"},
            id="allowed",
        ),
        pytest.param(
            (Decision.NO_OPINION, ""),
            {"authorization.k8s.io/decision": "forbid", "authorization.k8s.io/reason": ""},
            id="not allowed",
        ),
        pytest.param(None, None, id="no decision"),
    ],
)
def test_audit_line_has_authorization_decision(tmp_path, decision, annotations):
    assert logged_line(tmp_path, arrival_of("GET", decision=decision)).get("annotations") == annotations


def test_unauthenticated_request_is_logged_without_user(tmp_path):
    audit = Audit(tmp_path / "audit.log", DEFAULT_POLICY, clock=SteppedClock())
    answer = orjson.dumps({"kind": "Status", "status": "Failure", "message": "Unauthorized"})
    audit.reject(arrival_of("GET", authenticated=User(name="")), AuditedResponse(401, answer))
    audit.close()
    (line,) = lines(tmp_path / "audit.log")
    assert (line["user"], line["stage"]) == ({}, "ResponseStarted")
    assert line["responseStatus"] == {
        "metadata": {},
        "status": "Failure",
        "message": "Unauthorized",
        "code": 401,
    }


def test_client_texts_are_escaped_in_audit_line(tmp_path):
    user = User(name='eve\n{"kind":"Event"}\x1b[31m')
    logged_line(
        tmp_path,
        arrival_of("GET", "/api/v1/nodes/a\nb", authenticated=user, user_agent="x\r\ny", uri="/a\nb\x1b"),
    )
    data = (tmp_path / "audit.log").read_bytes()
    assert data.count(b"\n") == 1
    assert b"\x1b" not in data


def test_long_user_agent_is_truncated(tmp_path):
    line = logged_line(tmp_path, arrival_of("GET", user_agent="a" * (MAX_USER_AGENT + 1)))
    assert line["userAgent"] == "a" * MAX_USER_AGENT + "...TRUNCATED"


def file_mode(path):
    audit = Audit(path, DEFAULT_POLICY, clock=SteppedClock())
    audit.close()
    return stat.S_IMODE(path.stat().st_mode)


def test_failed_write_is_logged_and_counted_and_fails_no_request(tmp_path, caplog):
    audit = Audit(tmp_path / "audit.log", DEFAULT_POLICY, clock=SteppedClock())
    arrival = arrival_of("GET")
    request = audit.receive(arrival)
    with audit._file, Path("/dev/full").open("ab", buffering=0) as audit._file:
        audit.complete(request, arrival, OK)
    assert (audit.counts.events, audit.counts.errors) == (1, 1)
    (record,) = caplog.records
    assert record.message == "failed to write an event to the audit log"
    assert "No space left on device" in caplog.text


def test_audit_log_file_is_private(tmp_path):
    mask = os.umask(0)
    try:
        assert file_mode(tmp_path / "audit.log") == 0o600
    finally:
        os.umask(mask)


@pytest.mark.parametrize(("mode", "left"), [(0o644, 0o640), (0o666, 0o640), (0o600, 0o600), (0o640, 0o640)])
def test_existing_audit_log_file_is_made_private(tmp_path, mode, left):
    path = tmp_path / "audit.log"
    path.write_bytes(b"{}\n")
    path.chmod(mode)
    assert file_mode(path) == left
    assert path.read_bytes() == b"{}\n"


def test_audit_log_that_is_no_regular_file_is_refused(tmp_path):
    target, link, pipe = tmp_path / "target", tmp_path / "link", tmp_path / "pipe"
    link.symlink_to(target)
    os.mkfifo(pipe)
    with _reader(pipe):
        for path in (link, pipe, tmp_path, tmp_path / "none" / "audit.log"):
            with pytest.raises(BadAuditLog, match=str(path)):
                file_mode(path)
    assert not target.exists()


def _reader(pipe):
    """Open the pipe for reading: a pipe without a reader cannot be opened for writing."""
    return os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb")
