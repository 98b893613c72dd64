"""Query parameters that each verb accepts, compared with a real kube-apiserver 1.36."""

import pytest

from tests.support.server import apiserver

MAPS = "/api/v1/namespaces/default/configmaps"
HERE = "/api/v1/namespaces/default"
NO_NUMBER = 'strconv.ParseInt: parsing "{}": invalid syntax'
INVALID = '{}.meta.k8s.io "" is invalid: {}'
NO_DRY_RUN = 'dryRun: Unsupported value: [{}]: supported values: "All"'
NO_POLICY = 'propagationPolicy: Unsupported value: "{}": supported values: "Foreground", "Background", "Orphan", "nil"'
NO_TOKEN = "invalid continue token: continue key is not valid: {}"


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


def status_and_message(answer):
    return answer.status, answer.body.get("message", "") if answer.body["kind"] == "Status" else ""


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("limit=", (400, NO_NUMBER.format(""))),
        ("limit=a", (400, NO_NUMBER.format("a"))),
        ("limit=-1", (200, "")),
        ("timeoutSeconds=", (400, NO_NUMBER.format(""))),
        (
            "sendInitialEvents=",
            (
                422,
                INVALID.format(
                    "ListOptions", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"
                ),
            ),
        ),
        ("allowWatchBookmarks=", (200, "")),
        ("watch=False", (200, "")),
        ("watch=0", (200, "")),
        ("continue=", (200, "")),
        ("continue=x", (400, NO_TOKEN.format("illegal base64 data at input byte 0"))),
        ("continue=abc$", (400, NO_TOKEN.format("illegal base64 data at input byte 3"))),
        ("continue=eyJ2", (400, NO_TOKEN.format("unexpected end of JSON input"))),
        ("continue=bnVsbA", (400, NO_TOKEN.format("server does not recognize this encoded version "))),
        (
            "continue=W10",
            (
                400,
                NO_TOKEN.format("json: cannot unmarshal array into Go value of type storage.continueToken"),
            ),
        ),
        ("continue=x&resourceVersion=1", (400, NO_TOKEN.format("illegal base64 data at input byte 0"))),
    ],
)
async def test_list_parameters_are_validated(client, query, expected):
    assert status_and_message(await client.get(f"{MAPS}?{query}")) == expected


@pytest.mark.parametrize("value", ["true", "", "x"])
async def test_export_parameter_is_refused(client, value):
    refused = await client.get(f"{HERE}?export={value}")
    assert status_and_message(refused) == (
        400,
        "the export parameter, deprecated since v1.14, is no longer supported",
    )
    assert (await client.get(f"{HERE}?export=0")).status == 200


@pytest.mark.parametrize("path", [MAPS, f"{MAPS}/nope"])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("gracePeriodSeconds=", (400, NO_NUMBER.format(""))),
        ("gracePeriodSeconds=1.5", (400, NO_NUMBER.format("1.5"))),
        ("propagationPolicy=", (422, INVALID.format("DeleteOptions", NO_POLICY.format("")))),
        ("propagationPolicy=X", (422, INVALID.format("DeleteOptions", NO_POLICY.format("X")))),
        ("dryRun=", (422, INVALID.format("DeleteOptions", NO_DRY_RUN.format('""')))),
        ("dryRun=All&dryRun=", (422, INVALID.format("DeleteOptions", NO_DRY_RUN.format('"All",""')))),
    ],
)
async def test_delete_parameters_are_validated(client, path, query, expected):
    assert status_and_message(await client.delete(f"{path}?{query}")) == expected


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("dryRun=", NO_DRY_RUN.format('""')),
        ("fieldManager=%0A", 'fieldManager: Invalid value: "\\n": invalid character U+000A (at position 0)'),
        (
            "fieldManager=%C3%A4a%00%E2%80%A8",
            (
                '[fieldManager: Invalid value: "äa\\x00\\u2028": invalid character U+0000 (at position 3), '
                'fieldManager: Invalid value: "äa\\x00\\u2028": invalid character U+2028 (at position 4)]'
            ),
        ),
        (
            "dryRun=x&fieldManager=%01&fieldValidation=y",
            (
                '[fieldManager: Invalid value: "\\x01": invalid character U+0001 (at position 0), '
                'dryRun: Unsupported value: ["x"]: supported values: "All", '
                'fieldValidation: Unsupported value: "y": supported values: "", "Ignore", "Strict", "Warn"]'
            ),
        ),
    ],
)
async def test_options_are_validated_before_body(client, query, wrong):
    refused = await client.post(f"{MAPS}?{query}", {"metadata": {"labels": True}})
    assert status_and_message(refused) == (422, INVALID.format("CreateOptions", wrong))
    refused = await client.put(f"{MAPS}/nope?{query}", {"metadata": {"labels": True}})
    assert status_and_message(refused) == (422, INVALID.format("UpdateOptions", wrong))
    refused = await client.patch(f"{MAPS}/nope?{query}", b"{")
    assert status_and_message(refused) == (422, INVALID.format("PatchOptions", wrong))


@pytest.mark.parametrize("value", ["true", "false", ""])
async def test_force_is_only_for_apply(client, value):
    refused = await client.patch(f"{HERE}?force={value}", {})
    problem = "force: Forbidden: may not be specified for non-apply patch"
    assert status_and_message(refused) == (422, INVALID.format("PatchOptions", problem))


async def test_apply_without_field_manager_is_one_of_several_errors(client):
    refused = await client.patch(f"{HERE}?dryRun=x", {}, kind="apply-patch+yaml")
    no_dry_run = NO_DRY_RUN.format('"x"')
    problems = f"[fieldManager: Required value: is required for apply patch, {no_dry_run}]"
    assert status_and_message(refused) == (422, INVALID.format("PatchOptions", problems))


APPLIED_JSON = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"twice"},"data":{"a":"1","a":"2"}}'
TWICE = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: twice}\ndata:\n  a: '1'\n  a: '2'\n"
OF_BLOCK = 'line 6: key "a" already set in map'
OF_JSON = 'line 1: key "a" already set in map'


@pytest.mark.parametrize(("body", "problem"), [(TWICE, OF_BLOCK), (APPLIED_JSON, OF_JSON)])
async def test_apply_with_duplicate_keys_is_refused(client, body, problem):
    path = f"{MAPS}/twice?fieldManager=a"
    decoder = "error strict decoding patch: error converting YAML to JSON: yaml: unmarshal errors:"
    refused = await client.patch(f"{path}&fieldValidation=Strict", body, kind="apply-patch+yaml")
    assert status_and_message(refused) == (400, f"{decoder}\n  {problem}")
    applied = await client.patch(f"{path}&fieldValidation=Ignore", body, kind="apply-patch+yaml")
    assert (applied.status, applied.headers.getall("Warning", [])) == (201, [])
    applied = await client.patch(path, body, kind="apply-patch+yaml")
    assert applied.body["data"] == {"a": "2"}
    assert [text.replace("\\", "") for text in applied.headers.getall("Warning")] == [f'299 - "{problem}"']


async def test_conflict_is_reported_before_duplicate_keys(client):
    await client.patch(f"{MAPS}/twice?fieldManager=a", TWICE, kind="apply-patch+yaml")
    other = TWICE.replace(b"'2'", b"'3'")
    path = f"{MAPS}/twice?fieldManager=b&fieldValidation=Strict"
    assert (await client.patch(path, other, kind="apply-patch+yaml")).status == 409


MAP = {"metadata": {"name": "m", "labels": {"a": "b"}}}
IN_RECORD = "(x) does not match the {} in record ("


@pytest.mark.parametrize(("query", "name"), [("resourceVersion=x", "ResourceVersion"), ("uid=x", "UID")])
@pytest.mark.parametrize("path", [f"{MAPS}/m", f"{MAPS}?labelSelector=a%3Db&"])
async def test_delete_preconditions_may_be_in_query(client, path, query, name):
    await client.post(MAPS, MAP)
    path += query if "&" in path else f"?{query}"
    refused = await client.delete(path)
    if (path.startswith(f"{MAPS}?"), name) == (True, "ResourceVersion"):
        assert refused.status == 400  # a list has no such version
    else:
        assert refused.status == 409
        assert IN_RECORD.format(name) in refused.body["message"]
    in_body = await client.delete(f"{MAPS}/m?{query}", {"gracePeriodSeconds": 0})
    assert in_body.status == 200  # connect has options of its own


async def test_deletecollection_resource_version_is_precondition(client):
    created = await client.post(MAPS, MAP)
    version = created.body["metadata"]["resourceVersion"]
    refused = await client.delete(f"{MAPS}?labelSelector=a%3Db&resourceVersion=0")
    assert (refused.status, refused.body["reason"]) == (409, "Conflict")
    path = f"{MAPS}?labelSelector=a%3Db&resourceVersion={version}"
    assert (await client.delete(path)).status == 200
    assert (await client.get(f"{MAPS}/m")).status == 404


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("limit=x", NO_NUMBER.format("x")),
        ("labelSelector=a+in+(b", "unable to parse requirement: found '', expected: ',' or ')'"),
        (
            "fieldSelector=x%3D1",
            '"x" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
    ],
)
async def test_deletecollection_query_is_validated_before_body(client, query, problem):
    assert status_and_message(await client.delete(f"{MAPS}?{query}", {"gracePeriodSeconds": "1"})) == (
        400,
        problem,
    )


async def test_body_format_is_checked_before_options(client):
    wrong = {"Content_Type": "application/x"}
    assert (await client.post(f"{MAPS}?fieldValidation=x", MAP, **wrong)).status == 415
    assert (await client.put(f"{MAPS}/m?fieldValidation=x", MAP, **wrong)).status == 422


async def test_watch_options_are_validated_before_format(client):
    path = f"{HERE}/endpoints?watch=1&continue=x"
    refused = await client.get(path, Accept="application/yaml")
    assert refused.status == 422
    assert "v1 Endpoints is deprecated" in refused.headers["Warning"]


async def test_events_are_paged_at_any_age(client):
    for name in ("a", "b"):
        event = {"metadata": {"name": name}, "involvedObject": {"namespace": "default"}}
        assert (await client.post(f"{HERE}/events", event)).status == 201
        await client.post(MAPS, {"metadata": {"name": name}})
    page = (await client.get(f"{HERE}/events?limit=1&resourceVersion=0")).body
    assert (len(page["items"]), "continue" in page["metadata"]) == (1, True)
    await client.get(MAPS)  # and so the cache has them
    assert len((await client.get(f"{MAPS}?limit=1&resourceVersion=0")).body["items"]) > 1
