"""Decoding errors have exactly the messages of Go's decoder."""

import orjson
import pytest

from mockube.apiserver.schema import decoder_errors, document

DEPLOYMENT = ("apps/v1", "Deployment")
CONFIG_MAP = ("v1", "ConfigMap")
POD = ("v1", "Pod")
DEFINITION = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def find_faults(schemas, kind, text):
    return decoder_errors.find(schemas.kind(*kind), document.parse(text.encode()))


def type_error(what, where, go):
    return f"json: cannot unmarshal {what} into Go struct field {where} of type {go}"


@pytest.mark.parametrize(
    ("kind", "text", "error"),
    [
        pytest.param(
            CONFIG_MAP, "[]", "json: cannot unmarshal array into Go value of type v1.ConfigMap", id="no object"
        ),
        pytest.param(
            CONFIG_MAP, '{"metadata":1}', type_error("number", "ConfigMap.metadata", "v1.ObjectMeta"), id="a struct"
        ),
        pytest.param(
            CONFIG_MAP, '{"metadata":{"name":true}}', type_error("bool", "ObjectMeta.metadata.name", "string"),
            id="a text",
        ),
        pytest.param(CONFIG_MAP, '{"data":[]}', type_error("array", "ConfigMap.data", "map[string]string"), id="a map"),
        pytest.param(
            CONFIG_MAP, '{"data":{"a":1}}', type_error("number", "ConfigMap.data", "string"),
            id="map value, key not named",
        ),
        pytest.param(
            CONFIG_MAP, '{"binaryData":{"a":1}}', type_error("number", "ConfigMap.binaryData", "[]uint8"), id="bytes"
        ),
        pytest.param(
            CONFIG_MAP, '{"binaryData":{"a":[1,300]}}', type_error("number 300", "ConfigMap.binaryData", "uint8"),
            id="no byte",
        ),
        pytest.param(
            CONFIG_MAP, '{"binaryData":{"a":"?"}}', "illegal base64 data at input byte 0", id="no base64"
        ),
        pytest.param(
            CONFIG_MAP, '{"immutable":"yes"}', type_error("string", "ConfigMap.immutable", "bool"),
            id="pointer type is not named",
        ),
        pytest.param(
            POD, '{"spec":{"containers":{}}}', type_error("object", "PodSpec.spec.containers", "[]v1.Container"),
            id="a list",
        ),
        pytest.param(
            POD,
            '{"spec":{"containers":[{},"x"]}}',
            type_error("string", "PodSpec.spec.containers", "v1.Container"),
            id="list element, index not named",
        ),
        pytest.param(
            POD,
            '{"spec":{"containers":[{"imagePullPolicy":{}}]}}',
            type_error("object", "Container.spec.containers.imagePullPolicy", "v1.PullPolicy"),
            id="a named type",
        ),
        pytest.param(
            POD,
            '{"spec":{"volumes":[{"hostPath":[]}]}}',
            type_error("array", "Volume.spec.volumes.VolumeSource.hostPath", "v1.HostPathVolumeSource"),
            id="an embedded struct is named",
        ),
        pytest.param(
            DEPLOYMENT, '{"spec":{"replicas":"3"}}', type_error("string", "DeploymentSpec.spec.replicas", "int32"),
            id="an integer",
        ),
        pytest.param(
            DEPLOYMENT, '{"spec":{"replicas":1.50}}',
            type_error("number 1.50", "DeploymentSpec.spec.replicas", "int32"),
            id="fraction is printed unchanged",
        ),
        pytest.param(
            DEPLOYMENT, '{"spec":{"replicas":3000000000}}',
            type_error("number 3000000000", "DeploymentSpec.spec.replicas", "int32"),
            id="too large",
        ),
        pytest.param(
            DEPLOYMENT,
            '{"spec":{"strategy":{"rollingUpdate":{"maxSurge":true}}}}',
            type_error("bool", "RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge", "int32"),
            id="neither integer nor string",
        ),
        pytest.param(
            DEPLOYMENT,
            '{"spec":{"strategy":{"rollingUpdate":{"maxSurge":1.5}}}}',
            type_error("number 1.5", "RollingUpdateDeployment.spec.strategy.rollingUpdate.maxSurge", "int32"),
            id="a fraction for int-or-string",
        ),
        pytest.param(
            CONFIG_MAP,
            '{"metadata":{"creationTimestamp":5}}',
            type_error("number", "ObjectMeta.metadata.creationTimestamp", "string"),
            id="a time",
        ),
        pytest.param(
            CONFIG_MAP,
            '{"metadata":{"creationTimestamp":"x"}}',
            'parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"',
            id="no time",
        ),
        pytest.param(
            POD,
            '{"spec":{"overhead":{"cpu":{"a":1}}}}',
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="a quantity",
        ),
        pytest.param(
            DEFINITION,
            '{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"maximum":"x"}}}]}}',
            type_error("string", "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.maximum", "float64"),
            id="a number",
        ),
        pytest.param(
            DEFINITION,
            '{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"items":{"not":{"type":1}}}}}]}}',
            type_error("number", "JSONSchemaProps.spec.versions.schema.openAPIV3Schema.items.not.type", "string"),
            id="in a schema or list",
        ),
        pytest.param(
            DEFINITION,
            '{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"additionalProperties":1}}}]}}',
            "boolean or JSON schema expected",
            id="neither schema nor boolean",
        ),
    ],
)  # fmt: skip
def test_decoding_errors_are_upstreams(schemas, kind, text, error):
    assert find_faults(schemas, kind, text) == decoder_errors.DecodingErrors(error=error)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        pytest.param(
            '{"data":1,"metadata":2}', type_error("number", "ConfigMap.data", "map[string]string"),
            id="first error is reported",
        ),
        pytest.param(
            '{"metadata":{"name":1,"creationTimestamp":2},"data":3}',
            type_error("number", "ObjectMeta.metadata.creationTimestamp", "string"),
            id="fatal error is reported before type errors",
        ),
        pytest.param(
            '{"x":1,"data":2}', type_error("number", "ConfigMap.data", "map[string]string"),
            id="type error before strict errors"
        ),
    ],
)  # fmt: skip
def test_first_error_is_reported(schemas, text, error):
    assert find_faults(schemas, CONFIG_MAP, text) == decoder_errors.DecodingErrors(error=error)


@pytest.mark.parametrize(
    ("kind", "text", "strict"),
    [
        pytest.param(CONFIG_MAP, '{"data":{"a":"b"},"metadata":null}', (), id="no strict errors"),
        pytest.param(CONFIG_MAP, '{"Data":{"a":1}}', ('unknown field "Data"',), id="field names are case-sensitive"),
        pytest.param(
            POD, '{"spec":{"containers":[{},{"x":1}]}}', ('unknown field "spec.containers[1].x"',), id="in a list"
        ),
        pytest.param(
            POD, '{"spec":{"volumes":[{"hostPath":{"x":1}}]}}', ('unknown field "spec.volumes[0].hostPath.x"',),
            id="an embedded struct is not named",
        ),
        pytest.param(
            CONFIG_MAP,
            '{"data":{"a":"1","a":"2"},"y":1,"data":{},"x":2}',
            ('duplicate field "data.a"', 'unknown field "y"', 'duplicate field "data"', 'unknown field "x"'),
            id="in the order of the document",
        ),
        pytest.param(
            CONFIG_MAP,
            '{"data":{"a":"1"},"data":{"a":"1"},"data":{},"x":1,"x":2}',
            ('duplicate field "data"', 'unknown field "x"'),
            id="each error once",
        ),
        pytest.param(CONFIG_MAP, '{"a\\"b":1}', (r'unknown field "a\"b"',), id="quoted as Go quotes"),
        pytest.param(
            CONFIG_MAP, '{"metadata":{"managedFields":[{"fieldsV1":{"a":1,"a":2}}]}}', (), id="not in raw JSON"
        ),
        pytest.param(
            DEFINITION, '{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"items":{"x":1}}}}]}}', (),
            id="not in a schema or list",
        ),
        pytest.param(
            DEFINITION, '{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"items":1}}}]}}', (),
            id="not in a value that Go does not decode",
        ),
        pytest.param(
            ("meta.k8s.io/v1", "Table"), '{"rows":[{"cells":[[{"a":1,"a":2}],3]}]}',
            ('duplicate field "rows[0].cells[0][0].a"',), id="in an untyped value",
        ),
    ],
)  # fmt: skip
def test_strict_errors_are_reported(schemas, kind, text, strict):
    assert find_faults(schemas, kind, text) == decoder_errors.DecodingErrors(strict=strict)


def test_number_of_strict_errors_is_limited(schemas):
    text = orjson.dumps({f"x{number}": 1 for number in range(decoder_errors.MAX_STRICT_ERRORS + 5)}).decode()
    assert len(find_faults(schemas, CONFIG_MAP, text).strict) == decoder_errors.MAX_STRICT_ERRORS


def test_untyped_document_reports_duplicates_only():
    document_of_anything = document.parse(b'{"kind":"X","spec":{"a":[{"b":1,"c":null,"b":2}]},"d":1.5}')
    found = decoder_errors.find(decoder_errors.UNTYPED, document_of_anything)
    assert found == decoder_errors.DecodingErrors(strict=('duplicate field "spec.a[0].b"',))


@pytest.mark.parametrize(
    ("tree", "error"),
    [
        pytest.param(
            {"replicas": 1.5}, type_error("number 1.5", "DeploymentSpec.spec.replicas", "int32"), id="a float"
        ),
        pytest.param(
            {"replicas": 2**31}, type_error("number 2147483648", "DeploymentSpec.spec.replicas", "int32"),
            id="an integer"
        ),
        pytest.param(
            {"paused": 1}, type_error("number", "DeploymentSpec.spec.paused", "bool"), id="number for a boolean"
        ),
    ],
)  # fmt: skip
def test_tree_without_text_is_checked(schemas, tree, error):
    assert decoder_errors.find(schemas.kind(*DEPLOYMENT), {"spec": tree}).error == error
