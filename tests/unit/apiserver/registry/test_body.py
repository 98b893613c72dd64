"""A body: which bodies become objects, and which are refused."""

import pytest

from tests.support.server.custom_kinds import HOOKS_V1, define_hooks, hook
from tests.support.server.memory_api import CORE

CONFIG_MAPS = f"{CORE}/configmaps"
ONE = f"{CONFIG_MAPS}/a"


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        ("application/json", b'{"metadata": {"name": "a"}, "data": {"k": "v"}}'),
        ("application/yaml", b"metadata: {name: a}\ndata: {k: v}\n"),
        ("", b'{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}}'),
    ],
)
async def test_body_of_each_format_is_stored(api, media_type, body):
    answer = await api.send("POST", CONFIG_MAPS, body, media_type=media_type)
    assert (answer.code, (await api.stored(ONE))["data"]) == (201, {"k": "v"})


@pytest.mark.kills("object of another kind is stored")
@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        (
            {"apiVersion": "v1", "kind": "Secret"},
            (
                'Secret in version "v1" cannot be handled as a ConfigMap: '
                "converting (v1.Secret) to (core.ConfigMap): unknown conversion"
            ),
        ),
        (
            {"apiVersion": "v1", "kind": "Unknown"},
            (
                'Unknown in version "v1" cannot be handled as a ConfigMap: no kind "Unknown" is registered for '
                'version "v1" in scheme "pkg/runtime/scheme.go:111"'
            ),
        ),
    ],
)
async def test_body_of_another_kind_is_refused(api, sent, problem):
    answer = await api.create(CONFIG_MAPS, sent | {"metadata": {"name": "a"}})
    assert answer.refusal == (400, problem)
    assert await api.stored(ONE) is None


async def test_group_of_the_url_without_version_has_its_version(api):
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    lease = {"apiVersion": "coordination.k8s.io/", "kind": "Lease", "metadata": {"name": "a"}}
    answer = await api.create(leases, lease)
    assert (answer.code, answer.body["apiVersion"]) == (201, "coordination.k8s.io/v1")


async def test_other_group_without_version_is_refused(api):
    body = b'{"apiVersion": "a/", "kind": "ConfigMap", "metadata": {"name": "a"}}'
    answer = await api.send("POST", CONFIG_MAPS, body)
    missing = f"Object 'apiVersion' is missing in '{body.decode()}'"
    assert answer.refusal == (
        400,
        f'ConfigMap in version "" cannot be handled as a ConfigMap: {missing}',
    )


@pytest.mark.parametrize(
    ("version", "code"), [("a/", 400), ("meta.k8s.io/", 404), ("a/v1", 404), ("/", 404), ("", 404)]
)
async def test_options_of_deletion_have_group_with_version(api, version, code):
    answer = await api.delete(ONE, {"apiVersion": version, "kind": "DeleteOptions"})
    assert answer.code == code
    assert ("Object 'apiVersion' is missing in " in answer.message) is (code == 400)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "couldn't get version/kind; json parse error: unexpected end of JSON input"),
        (b"{", "couldn't get version/kind; json parse error: unexpected end of JSON input"),
        (
            b"[]",
            (
                "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type "
                "struct { APIVersion string"
            ),
        ),
    ],
)
async def test_body_that_is_no_object_is_refused(api, body, problem):
    answer = await api.create(CONFIG_MAPS, body)
    assert answer.code == 400
    assert problem in answer.message


async def test_body_of_unknown_format_is_refused(api):
    answer = await api.send("POST", CONFIG_MAPS, b"{}", media_type="image/png")
    assert answer.code == 415


@pytest.mark.kills("unknown fields are ignored")
@pytest.mark.parametrize(
    ("validation", "code", "warnings"),
    [
        ("Strict", 400, []),
        ("Warn", 201, ['unknown field "spec"']),
        ("", 201, ['unknown field "spec"']),
        ("Ignore", 201, []),
    ],
)
async def test_unknown_field_is_judged_as_client_requests_and_never_stored(api, validation, code, warnings):
    tree = {"metadata": {"name": "a"}, "spec": {}, "data": {"k": "v"}}
    answer = await api.create(CONFIG_MAPS, tree, fieldValidation=validation)
    assert (answer.code, answer.warnings) == (code, warnings)
    stored = await api.stored(ONE)
    assert stored is None if code == 400 else "spec" not in stored
    if code == 400:
        assert answer.message == (
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "spec"'
        )


async def test_duplicate_field_is_reported(api):
    body = b'{"metadata": {"name": "a"}, "data": {"k": "v", "k": "w"}}'
    answer = await api.create(CONFIG_MAPS, body)
    assert (answer.code, answer.warnings) == (201, ['duplicate field "data.k"'])
    assert (await api.stored(ONE))["data"] == {"k": "w"}


async def test_value_of_wrong_type_is_refused(api):
    answer = await api.create(CONFIG_MAPS, {"metadata": {"name": "a"}, "data": {"k": 5}})
    assert answer.refusal == (
        400,
        (
            'ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into '
            "Go struct field ConfigMap.data of type string"
        ),
    )
    assert await api.stored(ONE) is None


async def test_unknown_field_of_custom_object_is_pruned(api):
    await define_hooks(api, by_webhook=False)
    answer = await api.create(HOOKS_V1, hook(size=5, unknown=1))
    assert (answer.code, answer.warnings) == (201, ['unknown field "spec.unknown"'])
    assert (await api.stored(f"{HOOKS_V1}/a"))["spec"] == {"size": 5, "colour": "red"}


async def test_custom_object_of_another_kind_is_invalid(api):
    await define_hooks(api, by_webhook=False)
    answer = await api.create(HOOKS_V1, hook(size=5) | {"kind": "Other"})
    assert answer.refusal == (
        422,
        'Other.versions.test "a" is invalid: kind: Invalid value: "Other": must be Hook',
    )
    assert await api.stored(f"{HOOKS_V1}/a") is None


@pytest.mark.kills("object of another namespace is written")
async def test_body_of_another_namespace_is_refused(api):
    answer = await api.create(CONFIG_MAPS, {"metadata": {"name": "a", "namespace": "kube-system"}})
    assert answer.refusal == (
        400,
        "the namespace of the provided object does not match the namespace sent on the request",
    )
    assert await api.stored(ONE) is None


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"dryRun": "Some"}, 'dryRun: Unsupported value: ["Some"]: supported values: "All"'),
        ({"fieldManager": "a\n"}, "fieldManager: Invalid value"),
        ({"fieldManager": "x" * 129}, "fieldManager: Too long: may not be more than 128 bytes"),
        ({"fieldValidation": "Often"}, "fieldValidation: Unsupported value"),
    ],
)
async def test_invalid_option_is_refused_and_nothing_is_stored(api, options, problem):
    answer = await api.create(CONFIG_MAPS, {"metadata": {"name": "a"}}, **options)
    assert answer.code == 422
    assert problem in answer.message
    assert await api.stored(ONE) is None


@pytest.mark.parametrize("collection", [CONFIG_MAPS, HOOKS_V1])
async def test_version_with_two_slashes_is_not_recognized(api, collection):
    await define_hooks(api, by_webhook=False)
    answer = await api.create(collection, {"apiVersion": "a/b/c", "kind": "X", "metadata": {"name": "a"}})
    assert answer.code == 400
    assert 'unexpected GroupVersion string: a/b/c ({"apiVersion":"a/b/c"' in answer.message


async def test_custom_object_of_another_version_has_no_warnings(api):
    await define_hooks(api, by_webhook=False)
    answer = await api.create(HOOKS_V1, {**hook("x"), "apiVersion": "v1", "unknown": 1})
    assert (answer.code, answer.warnings) == (400, [])


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"generation": 2**63}, "number 9223372036854776000 into Go struct field ObjectMeta.generation of type int64"),
        ({"uid": 1, "annotations": {"a": {}}}, "object into Go struct field ObjectMeta.annotations of type string"),
    ],
)  # fmt: skip
async def test_metadata_of_custom_object_is_read_in_sorted_order_with_go_numbers(api, fields, problem):
    await define_hooks(api, by_webhook=False)
    answer = await api.create(HOOKS_V1, {**hook(), "metadata": {"name": "a", **fields}})
    assert answer.message.endswith(f"json: cannot unmarshal {problem}")
