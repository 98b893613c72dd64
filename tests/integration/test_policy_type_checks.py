"""Type checking of a policy's expressions by the manager, compared with kube-controller-manager 1.36.3.

The expected results are in `policy_type_checks.jsonl`; its first line defines a custom kind that some cases use. A type
has the name of its kind and a number that differs each time, which is `N` there.
"""

import re
from pathlib import Path

import orjson
import pytest

from mockube.component_base.clock import SteppedClock
from mockube.controller_manager.controllers.validatingadmissionpolicystatus.controller import (
    VALIDATING_ADMISSION_POLICY_STATUS,
)
from tests.support.controllers.running_manager import running_manager
from tests.support.server.apiserver import running
from tests.support.server.definitions import define

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
DEFINITION, *ANSWERS = map(
    orjson.loads, (Path(__file__).parent / "policy_type_checks.jsonl").read_bytes().splitlines()
)
RULE = {"apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["*"], "resources": ["deployments"]}


@pytest.fixture
async def cluster():
    clock = SteppedClock()
    async with running(clock=clock) as server:
        await define(server, DEFINITION["definition"])
        runnables = [VALIDATING_ADMISSION_POLICY_STATUS]
        async with running_manager(server, clock, controllers=[], runnables=runnables) as manager:
            yield server, manager


async def status_of(cluster, spec):
    server, manager = cluster
    answer = await server.post(POLICIES, {"metadata": {"name": "p"}, "spec": spec})
    assert answer.status == 201, answer.body
    await manager.settle()
    return (await server.get(f"{POLICIES}/p")).body["status"]


def policy(*expressions, rules=(RULE,)):
    validations = [{"expression": text} for text in expressions]
    return {"matchConstraints": {"resourceRules": list(rules)}, "validations": validations}


@pytest.mark.parametrize("answer", ANSWERS, ids=map(str, range(len(ANSWERS))))
async def test_type_check_warnings_match_recording(cluster, answer):
    status = await status_of(cluster, answer["spec"])
    assert orjson.loads(re.sub(rb"\b([A-Z][A-Za-z]+)\d+", rb"\1N", orjson.dumps(status))) == answer["status"]


async def test_changed_policy_is_checked_again(cluster):
    server, manager = cluster
    assert "expressionWarnings" in (await status_of(cluster, policy("object.spec.nope == 1")))["typeChecking"]
    changed = {"spec": {"validations": [{"expression": "object.spec.replicas == 1"}]}}
    await server.patch(f"{POLICIES}/p", changed)
    await manager.settle()
    assert (await server.get(f"{POLICIES}/p")).body["status"] == {"observedGeneration": 2}


async def test_at_most_ten_kinds_are_checked(cluster):
    names = [
        "configmaps",
        "endpoints",
        "events",
        "limitranges",
        "namespaces",
        "nodes",
        "pods",
        "podtemplates",
    ]
    more = ["replicationcontrollers", "resourcequotas", "secrets", "serviceaccounts", "services"]
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": [*names, *more]}
    status = await status_of(cluster, policy("object.nope == 1", rules=[rule]))
    (warning,) = status["typeChecking"]["expressionWarnings"]
    # Both groups have a kind Event.
    kinds = re.findall(r"Kind=(\w+)", warning["warning"])
    assert len(kinds) == 10
    assert "Secret" not in kinds
