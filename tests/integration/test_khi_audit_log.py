"""The audit log has what Kubernetes History Inspector reads of each line: its type "OSS Kubernetes Cluster", as of August 2026.

It takes lines of the stage ResponseComplete with an objectRef, orders them by stageTimestamp, and names an object by group, version,
plural, namespace and name; a name that the server generates is read from the response. Events are those whose response is an Event.
"""

import orjson
import pytest

from mockube.apimachinery.timestamps import parse_micro_time
from tests.support.server.apiserver import running

POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
rules: [{level: RequestResponse}]
"""
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
async def lines(tmp_path):
    """The lines of some writes that ended, by verb and resource."""
    policy, log = tmp_path / "policy.yaml", tmp_path / "audit.jsonl"
    policy.write_text(POLICY)
    async with running(f"--audit-policy-file={policy}", f"--audit-log-path={log}") as client:
        await client.post(CONFIG_MAPS, {"metadata": {"generateName": "settings-"}})
        await client.post(CONFIG_MAPS, {"metadata": {"name": "a"}})
        await client.patch(f"{CONFIG_MAPS}/a", {"data": {"color": "red"}})
        await client.post(CONFIG_MAPS, {"metadata": {"name": "a"}})
        await client.delete(f"{CONFIG_MAPS}/a")
        about = {"kind": "ConfigMap", "namespace": "default", "name": "a", "apiVersion": "v1"}
        event = {
            "metadata": {"name": "e"},
            "involvedObject": about,
            "reason": "Changed",
            "message": "It changed.",
        }
        await client.post("/api/v1/namespaces/default/events", event)
    found = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    return [
        line for line in found if line["stage"] == "ResponseComplete" and line["user"]["username"] == "admin"
    ]


def one(lines, verb, resource="configmaps", code=None):
    return [
        line
        for line in lines
        if (line["verb"], line["objectRef"]["resource"]) == (verb, resource)
        and code in (None, line["responseStatus"]["code"])
    ]


async def test_line_names_its_object_and_author(lines):
    (patch,) = one(lines, "patch")
    assert patch["kind"] == "Event"
    assert patch["objectRef"] | {"apiVersion": "v1"} == patch["objectRef"]
    assert (patch["objectRef"]["namespace"], patch["objectRef"]["name"]) == ("default", "a")
    assert "apiGroup" not in patch["objectRef"]  # KHI takes that for core
    assert patch["requestURI"].startswith(f"{CONFIG_MAPS}/a")
    assert patch["auditID"]
    assert patch["responseStatus"]["code"] == 200
    assert patch["requestObject"] == {"data": {"color": "red"}}
    assert patch["responseObject"]["data"] == {"color": "red"}
    parse_micro_time(patch["stageTimestamp"])


async def test_generated_name_is_in_the_response(lines):
    generated = one(lines, "create", code=201)[0]
    assert "name" not in generated["objectRef"]
    assert generated["responseObject"]["metadata"]["name"].startswith("settings-")


async def test_refused_write_has_code_and_message(lines):
    (refused,) = one(lines, "create", code=409)
    assert refused["responseStatus"]["message"] == 'configmaps "a" already exists'


async def test_events_are_told_apart_by_the_response(lines):
    (event,) = one(lines, "create", "events")
    assert event["responseObject"]["kind"] == "Event"
    assert event["responseObject"]["involvedObject"]["name"] == "a"
    assert (event["responseObject"]["reason"], event["responseObject"]["message"]) == (
        "Changed",
        "It changed.",
    )


async def test_deletion_is_a_line(lines):
    (deletion,) = one(lines, "delete")
    assert deletion["objectRef"]["name"] == "a"
