"""kubectl on a custom kind that is defined during the test."""

import orjson
import pytest

from tests.support.processes.process import ApiServerProcess
from tests.support.server import definitions

pytestmark = pytest.mark.timeout(240)

CRD = orjson.dumps(
    definitions.definition(
        definitions.version(
            schema={
                "type": "object",
                "properties": {
                    "spec": {
                        "type": "object",
                        "properties": {
                            "replicas": {"type": "integer", "default": 1, "description": "How many."}
                        },
                    },
                    "status": definitions.ANY_VALUE,
                },
            },
            subresources={
                "status": {},
                "scale": {
                    "specReplicasPath": ".spec.replicas",
                    "statusReplicasPath": ".status.replicas",
                },
            },
        )
    )
).decode()
WIDGET = f"""
apiVersion: {definitions.GROUP}/v1
kind: Widget
metadata: {{name: w}}
spec: {{}}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with ApiServerProcess(tmp_path_factory.mktemp("kinds")) as running:
        yield running


def test_custom_resources_are_served_until_definition_is_deleted(kubectl):
    kubectl("apply", "-f", "-", stdin=CRD)
    name = f"crd/widgets.{definitions.GROUP}"
    kubectl("wait", "--for=condition=Established", name, "--timeout=60s")
    assert kubectl("apply", "-f", "-", stdin=WIDGET) == f"widget.{definitions.GROUP}/w created\n"
    kubectl("scale", "wi/w", "--replicas=3")
    assert kubectl("get", "wi", "w", "-o", "jsonpath={.spec.replicas}") == "3"
    assert "How many." in kubectl("explain", "widgets.spec")
    unknown = kubectl.attempt("apply", "-f", "-", stdin=WIDGET.replace("spec: {}", "spec: {x: 1}"))
    assert 'unknown field "spec.x"' in unknown.stderr
    kubectl("delete", name, "--timeout=60s")
    assert kubectl.attempt("get", "widgets").returncode == 1
