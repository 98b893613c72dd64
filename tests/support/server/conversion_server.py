"""A conversion webhook over TLS: it renames a field between v1 and v2, and responds as its mode configures."""

import base64
import contextlib

import orjson
from aiohttp import web

from tests.support.server.webhook_server import credentials

GROUP = "versions.test"
MESSAGES = {
    "failed": "failed: no way",
    "failed-empty": "failed: response.result.status was 'Failed', not 'Success'",
    "no-status": "failed: response.result.status was '', not 'Success'",
    "count": "returned 2 objects, expected 1",
    "none": "returned 0 objects, expected 1",
    "name": "returned invalid object: must have the same name: a != zzz",
    "namespace": "returned invalid object: must have the same namespace: default != zzz",
    "kind": "returned invalid object at index 0: invalid kind (expected Hook, received Zzz)",
    "version": "returned invalid object at index 0: invalid groupVersion "
    "(expected versions.test/v1, received versions.test/v9)",
    "no-metadata": "returned invalid object: must have the same name: a != ",
    "int-label": "returned invalid metadata: metadata.labels[a] must be a string, but is int64 in converted object",
    "list-labels": "returned invalid metadata: invalid metadata.labels of type []interface {} in converted object",
    "no-response": "failed: no response provided",
    "wrong-kind": 'failed: no kind "Zzz" is registered for version "apiextensions.k8s.io/v1" '
    'in scheme "pkg/runtime/scheme.go:111"',
    "v1beta1": "failed: converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion",
    "500": 'failed: an error on the server ("boom") has prevented the request from succeeding',
}
"""kube-apiserver's error for each mode, behind `conversion webhook for versions.test/v2, Kind=Hook `."""
METADATA = {
    "name": {"name": "zzz"},
    "namespace": {"namespace": "zzz"},
    "int-label": {"labels": {"a": 1}},
    "list-labels": {"labels": [1]},
    "bad-label": {"labels": {"a b": "x"}},
    "labels": {"labels": {"converted": "yes"}, "finalizers": ["x/y"], "generation": 77},
}


def convert(tree, version):
    spec = dict(tree.get("spec", {}))
    if version.endswith("/v2") and "host" in spec:
        spec["endpoint"] = {"host": spec.pop("host")}
    if version.endswith("/v1") and "endpoint" in spec:
        spec["host"] = spec.pop("endpoint").get("host")
        spec.pop("colour", None)
    return tree | {"apiVersion": version, "spec": spec}


class ConversionServer:
    def __init__(self, authority):
        self.bundle = base64.b64encode(authority).decode()
        self.port = 0
        self.mode = ""
        self.requests = []
        """The requests of each review: the version, and the names of objects."""

    def definition(self, storage="v2", versions=("v1",), url=None):
        """The definition of Hooks, in v1 with a host and in v2 with an endpoint."""
        client = {"url": url or f"https://127.0.0.1:{self.port}/convert", "caBundle": self.bundle}
        hook = {"conversionReviewVersions": list(versions), "clientConfig": client}
        endpoint = {"host": {"type": "string"}, "port": {"type": "integer", "default": 80}}
        specs = {
            "v1": {"host": {"type": "string"}, "size": {"type": "integer", "default": 3}},
            "v2": {
                "endpoint": {"type": "object", "properties": endpoint},
                "size": {"type": "integer"},
                "colour": {"type": "string", "default": "red"},
            },
        }
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"hooks.{GROUP}"},
            "spec": {
                "group": GROUP,
                "scope": "Namespaced",
                "names": {"plural": "hooks", "kind": "Hook"},
                "conversion": {"strategy": "Webhook", "webhook": hook},
                "versions": [version(name, spec, name == storage) for name, spec in specs.items()],
            },
        }

    async def answer(self, request):
        body = orjson.loads(await request.read())
        conversion, mode = body["request"], self.mode
        names = [tree["metadata"]["name"] for tree in conversion["objects"]]
        self.requests.append((conversion["desiredAPIVersion"], names))
        if mode == "500":
            return web.Response(status=500, text="boom")
        converted_objects = [
            converted_with_fault(tree, conversion["desiredAPIVersion"], mode)
            for tree in conversion["objects"]
        ]
        response = {"uid": conversion["uid"], "result": {"status": "Success"}}
        response["convertedObjects"] = {"count": converted_objects * 2, "none": []}.get(
            mode, converted_objects
        )
        results = {"failed": {"status": "Failed", "message": "no way"}, "failed-empty": {"status": "Failed"}}
        if mode in results or mode == "no-status":
            response["result"] = results.get(mode, {})
        if mode == "uid":
            response["uid"] = "other"
        review = {"kind": "ConversionReview", "apiVersion": body["apiVersion"], "response": response}
        if mode == "no-response":
            del review["response"]
        if mode == "wrong-kind":
            review["kind"] = "Zzz"
        if mode == "v1beta1":
            review["apiVersion"] = "apiextensions.k8s.io/v1beta1"
        return web.json_response(review)


def converted_with_fault(tree, version, mode):
    result = convert(tree, version)
    result["metadata"] = result["metadata"] | METADATA.get(mode, {})
    if mode == "no-metadata":
        del result["metadata"]
    if mode == "kind":
        result["kind"] = "Zzz"
    if mode == "version":
        result["apiVersion"] = f"{GROUP}/v9"
    return result


def version(name, spec, is_stored):
    fields = {"spec": {"type": "object", "properties": spec}}
    row = {
        "name": name,
        "served": True,
        "storage": is_stored,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": fields}},
    }
    return row | ({"selectableFields": [{"jsonPath": ".spec.host"}]} if "host" in spec else {})


@contextlib.asynccontextmanager
async def conversion_server(tmp_path):
    context, authority = credentials(tmp_path, ())
    server = ConversionServer(authority)
    app = web.Application()
    app.router.add_post("/convert", server.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        server.port = runner.addresses[0][1]
        yield server
    finally:
        await runner.cleanup()
