"""CustomResourceDefinitions, each with the response of kube-apiserver 1.36.3."""

import pytest

from tests.support.server import apiserver
from tests.support.server.definitions import DEFINITIONS, definition, version

TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
SCHEMA = "spec.validation.openAPIV3Schema"
OTHER_TYPE = (
    "must point to a field of type string, boolean or integer. "
    "Enum string fields and strings with formats are allowed."
)
LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
    "character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for "
    "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def obj(**properties):
    return {"type": "object", "properties": properties}


EMBEDDED = {
    "type": "object",
    "x-kubernetes-embedded-resource": True,
    "x-kubernetes-preserve-unknown-fields": True,
}


@pytest.fixture
async def client():
    async with apiserver.running() as client:
        yield client


async def refusal(client, *versions):
    answer = await client.post(f"{DEFINITIONS}?dryRun=All", definition(*versions))
    assert answer.status == 422, answer.body
    prefix = 'CustomResourceDefinition.apiextensions.k8s.io "widgets.example.com" is invalid: '
    return answer.body["message"].removeprefix(prefix)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        pytest.param(
            obj(p={"type": "object", "$schema": "x"}),
            f"{SCHEMA}: Invalid value: \"\": OpenAPIV3Schema 'schema' is not supported",
            id="$schema",
        ),
        pytest.param(
            obj(p={"type": "object", "dependencies": {}}),
            f"{SCHEMA}.properties[p].dependencies: Forbidden: dependencies is not supported",
            id="empty dependencies",
        ),
        pytest.param(
            obj(p={"type": "object", "$ref": ""}),
            f"{SCHEMA}.properties[p].$ref: Forbidden: $ref is not supported",
            id="an empty $ref",
        ),
        pytest.param(
            obj(p={"type": "object", "additionalItems": False}),
            f"{SCHEMA}.properties[p].additionalItems: Forbidden: additionalItems is not supported",
            id="no additionalItems",
        ),
        pytest.param(
            obj(a=obj(b=NUMBER) | {"default": {"z": 1}}),
            f'{SCHEMA}.properties[a].default: Invalid value: {{"z":1}}: must not have unknown fields',
            id="a default with an unknown field",
        ),
        pytest.param(
            obj(a=TEXT) | {"default": {"q": 1}},
            f'[{SCHEMA}.default: Invalid value: {{"q":1}}: must not have unknown fields, '
            f"{SCHEMA}.default.apiVersion: Required value, {SCHEMA}.default.kind: Required value]",
            id="a default of whole objects",
        ),
        pytest.param(
            obj(metadata=obj(name=TEXT | {"default": "x"})),
            f"{SCHEMA}.properties[metadata].properties[name].default: "
            "Forbidden: must not be set in top-level metadata",
            id="a default in metadata",
        ),
        pytest.param(
            obj(a=EMBEDDED | {"default": {"metadata": {"name": 5}}}),
            f'{SCHEMA}.properties[a].default.metadata: Invalid value: {{"name":5}}: '
            "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string",
            id="a default of an embedded object with a number for a name",
        ),
        pytest.param(
            obj(l={"type": "array", "items": TEXT, "default": [None]}),
            f'{SCHEMA}.properties[l].default.[0]: Invalid value: "null": '
            '[0] in body must be of type string: "null"',
            id="a default list with null",
        ),
        pytest.param(
            obj(a=TEXT | {"default": 1, "x-kubernetes-list-type": "set"}),
            f'[{SCHEMA}.properties[a].default: Invalid value: "integer": '
            ' in body must be of type string: "integer", '
            f'{SCHEMA}.properties[a].type: Invalid value: "string": must be array if x-kubernetes-list-type is specified]',
            id="default and keyword of other types",
        ),
        pytest.param(
            obj(a=TEXT | {"default": 1, "pattern": "("}) | {"nullable": True},
            f"[{SCHEMA}.nullable: Forbidden: nullable cannot be true at the root, "
            f'{SCHEMA}.properties[a].pattern: Invalid value: "(": '
            "must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`]",
            id="an invalid pattern",
        ),
    ],
)
async def test_invalid_schemas_are_refused(client, schema, message):
    assert await refusal(client, version(schema=schema)) == message


async def test_deeply_nested_pattern_is_refused(client):
    pattern = "(" * 5000 + ")" * 5000
    message = await refusal(client, version(schema=obj(a=TEXT | {"pattern": pattern})))
    assert message == (
        f'{SCHEMA}.properties[a].pattern: Invalid value: "{pattern}": must be a valid regular expression, '
        f"but isn't: error parsing regexp: expression nests too deeply: `{pattern}`"
    )


ROOT_FIELDS = (
    "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength "
    "Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example "
    "XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the status subresource is enabled"
)
OBJECT_TYPE = (
    'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
)


@pytest.mark.parametrize(
    ("name", "value", "internal_value"),
    [
        ("allOf", [{"required": ["a"]}], '"Required":["a"]'),
        ("anyOf", [{"required": ["a"]}], '"AnyOf":[{"ID":""'),
        ("oneOf", [{"required": ["a"]}], '"OneOf":[{"ID":""'),
        ("not", {"required": ["b"]}, '"Not":{"ID":""'),
        ("enum", [{}], '"Enum":[{}]'),
        ("nullable", True, '"Nullable":true'),
        ("maxProperties", 3, '"MaxProperties":3'),
        ("minProperties", 0, '"MinProperties":0'),
        ("additionalProperties", True, '"AdditionalProperties":{"Allows":true,"Schema":null}'),
        ("additionalProperties", TEXT, '"AdditionalProperties":{"Allows":true,"Schema":{"ID":""'),
        ("dependencies", {"a": ["b"]}, '"Dependencies":{"a":{"Schema":null,"Property":["b"]}}'),
        ("x-kubernetes-embedded-resource", True, '"XEmbeddedResource":true'),
        ("x-kubernetes-map-type", "atomic", '"XMapType":"atomic"'),
        ("$schema", "x", '"Schema":"x"'),
        ("id", "x", '"ID":"x"'),
    ],
)  # fmt: skip
async def test_status_needs_separate_schema(client, name, value, internal_value):
    schema = obj(a=TEXT, l={"type": "array", "items": TEXT}) | {name: value}
    refused = await refusal(client, version(schema=schema, subresources={"status": {}}))
    refused = refused.removeprefix("[")
    assert refused.startswith(f'{SCHEMA}: Invalid value: {{"ID":"')
    assert ROOT_FIELDS in refused
    assert internal_value in refused
    assert '"Items":{"Schema":{"ID":"","Schema":"","Ref":null,"Description":"","Type":"string"' in refused


@pytest.mark.parametrize("status_version", [0, 1])
async def test_version_schema_with_status_is_validated_separately(client, status_version):
    schemas = [obj(a=TEXT) | {"maxProperties": 3}, {"type": "object"}]
    versions = [
        version(f"v{index}", schema=schema, storage=index == 0) for index, schema in enumerate(schemas)
    ]
    versions[status_version]["subresources"] = {"status": {}}
    answer = await client.post(f"{DEFINITIONS}?dryRun=All", definition(*versions))
    assert answer.status == (201 if status_version else 422)
    if not status_version:
        assert answer.body["details"]["causes"][0]["field"] == "spec.versions[0].schema.openAPIV3Schema"


async def test_status_subresource_needs_object_schema(client):
    schema = {"type": "array", "items": TEXT, "anyOf": [{}]}
    refused = await refusal(client, version(schema=schema, subresources={"status": {}}))
    assert refused == (
        f'[{SCHEMA}.type: Invalid value: "array": {OBJECT_TYPE}, '
        f'{SCHEMA}.type: Invalid value: "array": must be object at the root]'
    )


async def test_defaults_of_map_values_are_not_validated(client):
    values = obj(a=TEXT) | {"default": {"q": 1}}
    schema = obj(m={"type": "object", "additionalProperties": values})
    answer = await client.post(f"{DEFINITIONS}?dryRun=All", definition(version(schema=schema)))
    assert answer.status == 201, answer.body


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        ([".spec.a", ".spec.a"], '[1].jsonPath: Duplicate value: ".spec.a"'),
        ([".spec"], f'[0].jsonPath: Invalid value: ".spec": {OTHER_TYPE}'),
        ([".spec.l[0]"], '[0].jsonPath: Invalid value: ".spec.l[0]": is an invalid path: array notation is not allowed'),
        ([".spec.z"], '[0].jsonPath: Invalid value: ".spec.z": is an invalid path: does not refer to a valid field'),
        ([".metadata.name"], '[0].jsonPath: Invalid value: ".metadata.name": is an invalid path: does not refer to a valid field'),
        (["spec.a"], '[0].jsonPath: Invalid value: "spec.a": is an invalid path: expected [ or . but got: spec'),
        (["."], '[0].jsonPath: Invalid value: ".": is an invalid path: unexpected end of JSON path'),
        ([""], "[0].jsonPath: Required value"),
    ],
)  # fmt: skip
async def test_invalid_selectable_fields_are_refused(client, paths, message):
    schema = obj(spec=obj(a=TEXT, l={"type": "array", "items": TEXT}))
    selectable = [{"jsonPath": path} for path in paths]
    refused = await refusal(client, version(schema=schema, selectableFields=selectable))
    assert refused == f"spec.selectableFields{message}"


async def test_first_version_is_reported_twice(client):
    assert await refusal(client, version("V1")) == (
        f'[spec.versions[0].name: Invalid value: "V1": {LABEL}, spec.version: Invalid value: "V1": {LABEL}]'
    )


async def test_ignored_formats_are_warned_of(client):
    schema = obj(a=TEXT | {"format": "colour"}, b=TEXT | {"format": "date"}, c=NUMBER | {"format": "int32"})
    answer = await client.post(f"{DEFINITIONS}?dryRun=All", definition(version(schema=schema)))
    assert answer.headers.getall("Warning") == ['299 - "unrecognized format \\"colour\\""']
