"""Requests and groups of differences that `make differential` produces; the tests need no server."""

import contextlib

import orjson

from judges.differential import (
    admission,
    conversion_webhook,
    conversions,
    custom,
    expressions,
    fields,
    managers,
    table,
    updates,
    users,
    verbs,
)
from judges.differential.__main__ import Resource
from judges.differential.answers import comparable, record_identities, translated, without_suffix
from judges.differential.conversations import Conversations
from judges.differential.report import Report
from judges.differential.schemas import Schemas

PATH = "/api/v1/namespaces/${ns}/configmaps"
DOCUMENT = {
    "components": {
        "schemas": {
            "ConfigMap": {
                "type": "object",
                "properties": {
                    "metadata": {"allOf": [{"$ref": "#/components/schemas/Meta"}]},
                    "data": {"type": "object", "additionalProperties": {"type": "string"}},
                },
                "x-kubernetes-group-version-kind": [{"group": "", "version": "v1", "kind": "ConfigMap"}],
            },
            "Meta": {"type": "object", "properties": {"name": {"type": "string"}}},
        }
    }
}


def requests_of_case(number):
    """Return the requests of one conversation, when the response to each is its body."""
    resources = {PATH: Resource("", "v1", "ConfigMap", ())}
    case = Conversations(lambda *_: Schemas(DOCUMENT), resources).case(7, number)
    requests, answer = [], None
    with contextlib.suppress(StopIteration):
        while True:
            request = case.send(answer)
            requests.append(request)
            status = 201 if request["method"] == "POST" else 200
            answer = {"status": status, "body": request.get("body")}
    return requests


def test_conversation_is_reproducible_from_seed():
    assert requests_of_case(3) == requests_of_case(3) != requests_of_case(4)


def test_conversations_use_every_verb_and_every_patch():
    requests = [request for number in range(60) for request in requests_of_case(number)]
    assert {request["method"] for request in requests} == {"POST", "GET", "PUT", "PATCH", "DELETE"}
    kinds = {
        request["headers"]["Content-Type"].partition("+")[0]
        for request in requests
        if request["method"] == "PATCH"
    }
    assert kinds == {
        "application/json-patch",
        "application/merge-patch",
        "application/strategic-merge-patch",
        "application/apply-patch",
    }


def test_differences_are_grouped_and_smallest_example_is_kept():
    report = Report()
    for size in (9, 3, 5):
        rows = [("status", 422, 201), ("body.message", f'"a{size}" is invalid', "<absent>")]
        report.add_different("pods", {"method": "POST", "path": "/x"}, rows, {"steps": ["x" * size]})
    report.add_different(
        "pods", {"method": "POST", "path": "/x"}, [("body.message", "a", "b")], {"steps": []}
    )
    report.add_same()
    first, second = report.sorted()
    assert (first.count, first.smallest()) == (3, [{"steps": ["xxx"]}])
    assert second.signature == "POST wording body.message: a against b"
    assert (
        report.summary()
        == "5 requests: 20.00 % answered the same, 40.00 % but for wording, 0 refused by both, 0 let in or refused by one server only"
    )


def test_requests_to_second_server_use_its_own_generated_values():
    identities = {}
    uids = "0b3f8d1c-2f00-4f6a-9b1e-2d6c00000001", "0b3f8d1c-2f00-4f6a-9b1e-2d6c00000002"
    record_identities(
        identities,
        created_object(uids[0], "5", "10.0.0.1", "kube-api-access-aaaaa"),
        created_object(uids[1], "70", "10.0.0.2", "kube-api-access-bbbbb"),
    )
    request = {
        "path": f"/x/{uids[0]}",
        "body": created_object(uids[0], "5", "10.0.0.1", "kube-api-access-aaaaa"),
    }
    assert translated(request, identities) == {
        "path": f"/x/{uids[1]}",
        "body": created_object(uids[1], "70", "10.0.0.2", "kube-api-access-bbbbb"),
    }
    assert translated({"name": "b", "port": 80}, identities) == {"name": "b", "port": 80}


def test_list_version_does_not_replace_object_version():
    identities = {}
    record_identities(
        identities, {"metadata": {"resourceVersion": "5"}}, {"metadata": {"resourceVersion": "70"}}
    )
    lists = (
        {"metadata": {"resourceVersion": version, "continue": token}, "items": []}
        for version, token in (("5", "a"), ("71", "b"))
    )
    record_identities(identities, *lists)
    assert identities == {"5": "70", "a": "b"}


def created_object(uid, version, address, volume):
    metadata = {"uid": uid, "resourceVersion": version, "labels": {"controller-uid": uid}}
    return {"metadata": metadata, "spec": {"clusterIPs": [address], "volumes": [{"name": volume}]}}


def test_generated_names_are_not_compared():
    request = {"method": "POST", "body": {"metadata": {"generateName": "g-"}}}
    answer = {"body": {"message": 'Pod "g-x9bcd" is invalid', "name": "g-x9bcd"}}
    assert without_suffix(answer, request)["body"] == {
        "message": 'Pod "<generated>" is invalid',
        "name": "<generated>",
    }


def test_objects_of_other_conversations_are_not_compared():
    body = {"items": [{"metadata": {"name": name}} for name in ("d1-x", "d2-x")]}
    found = comparable({"type": "application/json", "status": 200, "body": body}, "d2")
    assert found["body"] == {"items": [{"metadata": {"name": "<ns>-x"}}]}


def test_custom_kinds_are_random_and_reproducible():
    def definitions(seed):
        found = custom.cases(seed)
        return [next(next(found))["body"] for _ in range(20)]

    assert definitions(3) == definitions(3) != definitions(4)
    assert b'"x-kubernetes-list-type":"map"' in orjson.dumps(definitions(3))


def test_each_field_of_schema_is_added_to_object():
    resources = {PATH: Resource("", "v1", "ConfigMap", ())}
    bodies = []
    for case in fields.cases(7, resources, lambda *_: Schemas(DOCUMENT)):
        answer = None
        with contextlib.suppress(StopIteration):
            while True:
                request = case.send(answer)
                bodies.append(request["body"])
                answer = {"status": 201, "body": request["body"]}
    data = [body["data"] for body in bodies if "data" in body]
    assert all(each in data for each in ({}, {"a": "a"}, {"A b": "a"}, {"b": None}))
    assert any((each or {}).get("a") == "x" * 300 for each in data)


def test_table_omits_each_field_and_tries_other_values():
    bodies = [request["body"] for case in table.cases(("leases",)) for request in case]
    assert any("spec" not in body for body in bodies)
    assert any(body.get("spec") == [] for body in bodies)
    assert all(
        body["metadata"]["name"] == "${ns}-x" for body in bodies if "name" in (body.get("metadata") or "")
    )


def test_updates_change_each_field_of_stored_object():
    case = next(updates.cases(("leases",)))
    first_request = next(case)
    stored = {"metadata": {"name": "x", "labels": {"a": "b"}}, "spec": {"holderIdentity": "h"}}
    bodies = [case.send({"status": 201, "body": stored})["body"]]
    bodies += [request["body"] for request in case]
    assert first_request["method"] == "POST"
    assert {"labels": {}, "name": "x"} in [body.get("metadata") for body in bodies]
    assert any(body.get("spec") == {"holderIdentity": ""} for body in bodies)


def test_users_get_roles_then_request_objects_of_others():
    resources = {PATH: Resource("", "v1", "ConfigMap", ("status",))}
    requests = [*next(users.cases(3, resources))]
    assert requests == [*next(users.cases(3, resources))] != [*next(users.cases(4, resources))]
    assert any("rolebindings" in request["path"] for request in requests[:5])
    senders = [request["headers"] for request in requests if "headers" in request]
    assert {"Impersonate-User": "viewer"} in senders


def test_verbs_cover_every_method_patch_and_list_option():
    resources = {PATH: Resource("", "v1", "ConfigMap", ("status",))}
    cases = verbs.cases(3, resources, lambda *_: Schemas(DOCUMENT))
    sent = [request for _, case in zip(range(60), cases, strict=False) for request in requests_of(case)]
    methods = {"POST", "GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"}
    assert {request["method"] for request in sent} == methods
    kinds = {request.get("headers", {}).get("Content-Type", "") for request in sent}
    assert kinds > {*verbs.PATCHES, "application/yaml"}
    paths = " ".join(request["path"] for request in sent)
    assert all(part in paths for part in ("watch=true", "continue=", "fieldSelector=", "/status", "dryRun="))
    assert any(b"$patch" in orjson.dumps(request.get("body")) for request in sent)


def test_managers_apply_parts_of_an_object():
    resources = {PATH: Resource("", "v1", "ConfigMap", ())}
    cases = managers.cases(3, resources, lambda *_: Schemas(DOCUMENT))
    sent = [request for _, case in zip(range(40), cases, strict=False) for request in requests_of(case)]
    paths = " ".join(request["path"] for request in sent)
    assert all(f"fieldManager={manager}" in paths for manager in managers.MANAGERS)
    applied = [request for request in sent if managers.APPLY in request.get("headers", {}).values()]
    assert {"force=true" in request["path"] for request in applied} == {True, False}
    assert (
        len({orjson.dumps(request["body"], option=orjson.OPT_SORT_KEYS) for request in applied})
        > len(applied) / 2
    )


def test_admission_cases_cover_every_workload():
    sent = [
        request
        for _, case in zip(range(40), admission.cases(3), strict=False)
        for request in requests_of(case)
    ]
    kinds = {
        request["path"].partition("?")[0].rpartition("/")[2]
        for request in sent
        if request["method"] == "POST"
    }
    assert kinds > {"pods", "deployments", "jobs", "cronjobs", "limitranges", "resourcequotas"}
    assert b"pod-security.kubernetes.io/enforce" in orjson.dumps([request.get("body") for request in sent])


def test_expression_cases_cover_every_library():
    found = expressions.cases(3)
    rules = [rule for _ in range(60) for rule in _rules(next(next(found))["body"])]
    text = orjson.dumps(rules).decode()
    known = (
        "quantity(",
        "ip(",
        "cidr(",
        "url(",
        "semver(",
        "format.",
        "sets.",
        "optional.",
        ".sortBy(",
        "math.",
    )
    assert all(part in text for part in known)
    assert any("messageExpression" in rule for rule in rules)


def _rules(definition):
    version = definition["spec"]["versions"][0]
    return version["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"]


def requests_of(case):
    """Return the requests of a conversation, when the response to each is its body."""
    requests, answer = [], None
    with contextlib.suppress(StopIteration):
        while True:
            requests.append(request := case.send(answer))
            status = 201 if request["method"] == "POST" else 200
            answer = {"status": status, "body": request.get("body") or {}}
    return requests


def conversion_requests(seed):
    case, requests, answer = next(conversions.cases(seed, conversion_webhook.Webhook(1, b"ca"))), [], None
    with contextlib.suppress(StopIteration):
        while True:
            requests.append(request := case.send(answer))
            if "wait" not in request:
                answer = {"status": 201, "body": request.get("body")}
    return requests


def test_conversions_are_reproducible_from_seed_and_write_both_versions():
    requests = conversion_requests(3)
    assert requests == conversion_requests(3) != conversion_requests(4)
    paths = [request["path"] for request in requests if request.get("method") == "PATCH"]
    assert all(any(part in path for path in paths) for part in ("/v1/", "/v2/", "/scale", "/status"))


def test_conversion_has_fault_that_object_names():
    thing = {"apiVersion": "g/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": {"host": "h"}}

    def response(**annotations):
        tree = thing | {"metadata": {"name": "x", "annotations": annotations}}
        sent = {"uid": "1", "objects": [tree], "desiredAPIVersion": "g/v2"}
        answer = conversion_webhook.converted_review({"kind": "R", "apiVersion": "a/v1", "request": sent})
        return answer and orjson.loads(answer[2] or "0")

    (converted,) = response()["response"]["convertedObjects"]
    assert (converted["apiVersion"], converted["spec"]) == ("g/v2", {"endpoint": {"host": "h"}})
    assert response(fault="failed")["response"]["result"] == {"status": "Failed", "message": "no way"}
    assert response(fault="failed", to="/v1")["response"]["result"] == {"status": "Success"}
    assert response(fault="close") is None
    assert len({*conversion_webhook.FAULTS}) == len(conversion_webhook.FAULTS)


def test_managers_of_several_seconds_are_compared_without_order():
    def answer(*entries):
        managers = [{"manager": name, "operation": "Apply", "time": time} for name, time in entries]
        return {"status": 200, "type": "", "body": {"metadata": {"managedFields": managers}}}

    first, second = "2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"
    one = comparable(answer(("b", first), ("a", second)), "n")
    assert one == comparable(answer(("a", first), ("b", second)), "n")
    assert comparable(answer(("b", first), ("a", first)), "n") != comparable(
        answer(("a", first), ("b", first)), "n"
    )


def test_causes_of_one_field_are_compared_without_order():
    causes = [
        {"field": "metadata.labels", "message": 'Invalid value: "a b"'},
        {"field": "metadata.labels", "message": 'Invalid value: "-"'},
        {"field": "spec.x", "message": "Required value"},
        {"field": "spec.containers[0].resources.requests[cpu]", "message": "Invalid value"},
        {"field": "spec.containers[0].resources.limits", "message": "Required value"},
    ]

    def answer(*order):
        texts = ", ".join(f"{causes[index]['field']}: {causes[index]['message']}" for index in order)
        details = {"causes": [causes[index] for index in order]}
        body = {"kind": "Status", "message": f"X is invalid: [{texts}]", "details": details}
        return comparable({"status": 422, "type": "application/json", "body": body}, "ns")

    assert answer(0, 1, 2, 3, 4) == answer(1, 0, 2, 4, 3) != answer(2, 0, 1, 3, 4)
