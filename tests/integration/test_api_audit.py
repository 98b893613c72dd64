"""The events of the audit log for requests of all kinds, as kube-apiserver 1.36 writes them for the same requests."""

import re
from pathlib import Path

import orjson
import pytest

from mockube.apiserver.audit.policy import BadPolicy
from mockube.apiserver.wire.protobuf import envelope
from tests.support.server import apiserver

CASES = [
    orjson.loads(line) for line in (Path(__file__).parent / "audit_events.jsonl").read_bytes().splitlines()
]
PROTOBUF = "application/vnd.kubernetes.protobuf"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"
LEFT_OUT = {
    "apiVersion", "auditID", "description", "kind", "level", "managedFields", "requestReceivedTimestamp", "requestURI",
    "sourceIPs", "stageTimestamp", "time", "userAgent",
}  # fmt: skip
"""Fields of an event or of its objects that differ from run to run, or that the recording does not have."""
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z")
AGE = re.compile(r"\d+s")
"""An age as a table shows it: the object may be a second old when it is listed."""


def blanked(value, key=""):
    """Return a value with the recording's placeholders."""
    if isinstance(value, dict):
        return {name: blanked(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [blanked(item) for item in value]
    if key in ("resourceVersion", "token") or (key == "name" and value.startswith("g-")):
        return "*" if value else value
    if isinstance(value, str) and AGE.fullmatch(value):
        return "AGE"
    return TIME.sub("TIME", UID.sub("UID", value)) if isinstance(value, str) else value


def compared(event):
    """Return what both events have: the objects without what differs, and the user if it is not the administrator."""
    shown = {name: value for name, value in event.items() if name not in LEFT_OUT}
    for name in ("requestObject", "responseObject"):
        if name in shown:
            shown[name] = without(shown[name], {"managedFields", "description", "time"})
    shown["user"] = without(shown.get("user", {}), {"uid"})
    if shown["user"].get("username", "admin") == "admin":
        del shown["user"]
    return blanked(shown)


def without(value, names):
    if isinstance(value, dict):
        return {name: without(item, names) for name, item in value.items() if name not in names}
    return [without(item, names) for item in value] if isinstance(value, list) else value


async def send(client, case):
    """Send the request of a case; its id is that of its events."""
    body = case.get("body")
    if "base" in case:
        body = (await client.get(case["base"])).body | body
    if "text" in case:
        body = case["text"].encode()
    headers = {"Accept": "application/json", **case.get("headers", {}), "Audit-ID": case["id"]}
    if headers.get("Content-Type") == PROTOBUF:
        body = envelope.encode(body)
    answer = await client.send(case["method"], case["path"], body, **headers)
    if case["id"] == "crd":
        while (await client.get(WIDGETS)).status != 200:
            pass
    return answer.status


@pytest.mark.parametrize("level", ["Metadata", "RequestResponse"])
async def test_audit_events_are_those_of_kube_apiserver(tmp_path, level):
    path, policy = tmp_path / "audit.log", tmp_path / "policy.yaml"
    policy.write_bytes(
        orjson.dumps({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": level}]})
    )
    async with apiserver.running_with_roles(
        f"--audit-log-path={path}", f"--audit-policy-file={policy}"
    ) as client:
        await client.post("/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        codes = {case["id"]: await send(client, case) for case in CASES}
    assert codes == {case["id"]: case["code"] for case in CASES}
    events = {case["id"]: [] for case in CASES}
    for line in path.read_bytes().splitlines():
        event = orjson.loads(line)
        if event["auditID"] in events:
            events[event["auditID"]].append(compared(event))
    recorded = {case["id"]: [compared(event) for event in case["events"][level]] for case in CASES}
    assert events == recorded


async def test_policy_without_a_log_is_accepted_and_reported(tmp_path, caplog):
    policy = tmp_path / "policy.yaml"
    policy.write_text("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}")
    async with apiserver.running(f"--audit-policy-file={policy}") as client:
        assert (await client.get("/api/v1/namespaces")).status == 200
        assert client.server._audit is None
    assert "--audit-policy-file has no effect without --audit-log-path" in caplog.text


async def test_invalid_policy_without_a_log_is_refused(tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text("{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Loud}]}")
    with pytest.raises(BadPolicy, match="level must be one of"):
        async with apiserver.running(f"--audit-policy-file={policy}"):
            pass


async def test_log_without_a_policy_has_all_requests_without_bodies(tmp_path):
    path = tmp_path / "audit.log"
    async with apiserver.running(f"--audit-log-path={path}") as client:
        assert (await client.get("/api/v1/namespaces")).status == 200
    events = [*map(orjson.loads, path.read_bytes().splitlines())]
    assert {event["level"] for event in events} == {"Metadata"}
    assert "/api/v1/namespaces" in {event["requestURI"] for event in events}


async def test_journal_has_the_ids_of_the_audit_log(tmp_path):
    """Both have what the other lacks: the journal the revision, the audit log the request."""
    path = tmp_path / "audit.log"
    async with apiserver.running(f"--audit-log-path={path}") as client:
        created = await client.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "a"}})
        await client.delete("/api/v1/namespaces/default/configmaps/a")
        journal = client.server.registry.journal
        entries = journal.entries()
    events = [*map(orjson.loads, path.read_bytes().splitlines())]
    logged = {event["auditID"]: event for event in events if event["stage"] == "ResponseComplete"}
    assert journal.author(int(created.body["metadata"]["resourceVersion"])).audit_id in logged
    by_users = [entry.author for entry in entries if entry.author.user == "admin"]
    assert [author.verb for author in by_users] == ["create", "create", "delete"]
    for author in by_users:
        event = logged[author.audit_id]
        assert (event["user"]["username"], event["verb"]) == (author.user, author.verb)
        assert event["userAgent"] == author.agent
