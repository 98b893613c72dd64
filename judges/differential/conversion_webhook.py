"""The conversion webhook of `conversions`: a server of this process, whose conversions have the faults that objects name.

Its objects have a host in v1 that is an endpoint in v2, and a phase that is a state.
"""

import base64
import contextlib
import json
import os
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.server.webhook_server import credentials

FAULT = "fault"
"""The annotation with the fault of each conversion of the object."""
RESULTS = {
    "failed": {"status": "Failed", "message": "no way"},
    "failed-silently": {"status": "Failed"},
    "failed-code": {"status": "Failed", "message": "no", "code": 418, "reason": "Teapot"},
    "failure": {"status": "Failure", "message": "a\nb", "reason": "Invalid", "details": {"name": "x"}},
    "no-status": {"message": "m"},
    "empty-result": {},
    "null-result": None,
    "text-result": "Success",
    "text-code": {"status": "Success", "code": "200"},
    "large-code": {"status": "Success", "code": 3000000000},
    "float-code": {"status": "Success", "code": 1.5},
    "text-details": {"status": "Success", "details": "a"},
    "text-causes": {"status": "Failed", "details": {"causes": "a"}},
    "number-cause": {"status": "Failed", "details": {"causes": [{"reason": 1}]}},
    "list-metadata": {"status": "Success", "metadata": []},
    "lower-success": {"status": "success"},
    "success-message": {"status": "Success", "message": "fine", "code": 500},
}
"""The results of failed conversions."""
METADATA = {
    "name": {"name": "zzz"},
    "empty-name": {"name": ""},
    "number-name": {"name": 1},
    "namespace": {"namespace": "zzz"},
    "no-namespace": {"namespace": None},
    "uid": {"uid": "00000000-0000-0000-0000-000000000000"},
    "no-uid": {"uid": None},
    "number-uid": {"uid": 1},
    "version": {"resourceVersion": "1"},
    "generation": {"generation": 77},
    "text-generation": {"generation": "77"},
    "created": {"creationTimestamp": "2001-01-01T00:00:00Z"},
    "deleted": {"deletionTimestamp": "2001-01-01T00:00:00Z"},
    "finalizers": {"finalizers": ["x/y"]},
    "owners": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"}]},
    "managers": {"managedFields": []},
    "self-link": {"selfLink": "/x"},
    "unknown-metadata": {"other": "x"},
    "labels": {"labels": {"converted": "yes"}},
    "no-labels": {"labels": None},
    "bad-label": {"labels": {"a b": "x"}},
    "long-label": {"labels": {"a": "x" * 64}},
    "number-label": {"labels": {"a": 1}},
    "null-label": {"labels": {"a": None}},
    "nested-label": {"labels": {"a": {"b": "c"}}},
    "list-labels": {"labels": [1]},
    "text-labels": {"labels": "a"},
    "annotations": {"annotations": {"converted": "yes"}},
    "number-annotation": {"annotations": {"a": True}},
    "list-annotations": {"annotations": []},
}
"""Metadata that a webhook changes, which it may not, except for labels and annotations."""
RESPONSES = {
    "other-uid": {"uid": "other"},
    "empty-uid": {"uid": ""},
    "number-uid-of-response": {"uid": 1},
    "no-objects": {"convertedObjects": []},
    "null-objects": {"convertedObjects": None},
    "text-objects": {"convertedObjects": "a"},
    "null-object": {"convertedObjects": [None]},
    "text-object": {"convertedObjects": ["a"]},
    "empty-object": {"convertedObjects": [{}]},
    "unknown-field": {"other": 1},
}
REVIEWS = {
    "no-response": {"response": None},
    "text-response": {"response": "a"},
    "list-response": {"response": []},
    "wrong-kind": {"kind": "Zzz"},
    "no-kind": {"kind": ""},
    "list-kind": {"kind": "List", "apiVersion": "v1"},
    "beta": {"apiVersion": "apiextensions.k8s.io/v1beta1"},
    "future": {"apiVersion": "apiextensions.k8s.io/v9"},
    "no-version": {"apiVersion": ""},
    "other-group": {"apiVersion": "admission.k8s.io/v1"},
    "unknown-member": {"other": {}},
}
OBJECT_FAULTS = {
    "kind": {"kind": "Zzz"},
    "empty-kind": {"kind": ""},
    "list-of-objects": {"kind": "ThingList", "items": []},
    "api-version": {"apiVersion": "example.com/v9"},
    "empty-version": {"apiVersion": ""},
    "core-version": {"apiVersion": "v1"},
    "null-metadata": {"metadata": None},
    "text-metadata": {"metadata": "a"},
    "empty-metadata": {"metadata": {}},
    "extra": {"extra": {"a": 1}},
    "text-spec": {"spec": "a"},
    "null-spec": {"spec": None},
}
HTTP = {
    "500": (500, "text/plain", b"boom"),
    "404": (404, "text/plain", b"404 page not found"),
    "403": (403, "text/plain", b""),
    "400-status": (
        400,
        "application/json",
        b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"bad","reason":"BadRequest","code":400}',
    ),
    "404-colon": (404, "text/plain", b"404: Not Found"),
    "500-object": (500, "application/json", b"{}"),
    "500-error": (500, "application/json", b'{"error": "x"}'),
    "500-message": (500, "application/json", b'{"message": "x", "code": 409}'),
    "500-success": (500, "application/json", b'{"kind": "Status", "apiVersion": "v1", "status": "Success"}'),
    "500-other": (500, "application/json", b'{"kind": "Zzz", "apiVersion": "v1", "message": "x"}'),
    "500-typed": (500, "application/json", b'{"message": 1}'),
    "500-yaml": (500, "application/yaml", b"kind: Status\napiVersion: v1\nmessage: y\n"),
    "500-list": (500, "application/json", b"[]"),
    "500-empty": (500, "text/plain", b""),
    "status": (200, "application/json", b'{"kind": "Status", "apiVersion": "v1", "message": "not me"}'),
    "success": (200, "application/json", b'{"kind": "Status", "apiVersion": "v1", "status": "Success"}'),
    "number": (200, "application/json", b"5"),
    "number-kind": (200, "application/json", b'{"kind": 5}'),
    "slashes": (200, "application/json", b'{"kind": "A", "apiVersion": "a/b/c"}'),
    "tabs": (200, "text/plain", b"a:\n\t- b"),
    "bracket": (200, "application/json", b"["),
    "spaces": (200, "application/json", b"  \n"),
    "bytes": (200, "application/octet-stream", b"\x00\x01\xff"),
    "429": (429, "text/plain", b"later"),
    "503": (503, "text/plain", b"down"),
    "201": (201, "text/plain", b""),
    "empty": (200, "application/json", b""),
    "text": (200, "text/plain", b"hello"),
    "half": (200, "application/json", b'{"kind": "ConversionReview", '),
    "list": (200, "application/json", b"[]"),
    "null": (200, "application/json", b"null"),
    "yaml": (200, "application/yaml", b"kind: ConversionReview\napiVersion: apiextensions.k8s.io/v1\n"),
}
FAULTS = (*RESULTS, *METADATA, *RESPONSES, *REVIEWS, *OBJECT_FAULTS, *HTTP, "twice", "spec", "close", "reset")


RESET = (0, "", b"")
"""Instead of a response: the connection is reset."""


class Webhook:
    """The address and the CA of the conversion webhook."""

    def __init__(self, port: int, authority: bytes) -> None:
        self.url = f"https://127.0.0.1:{port}/convert"
        self.bundle = base64.b64encode(authority).decode()


@contextlib.contextmanager
def running_webhook(folder: Path) -> Iterator[Webhook]:
    """Serve conversions in a thread."""
    context, authority = credentials(folder, ())
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Webhook(server.server_port, authority)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle(self) -> None:
        with contextlib.suppress(ssl.SSLError, OSError):
            super().handle()

    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = converted_review(review)
        if answer is None:
            self.close_connection = True
            return
        if answer is RESET:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            os.close(self.connection.detach())  # without the end of TLS
            self.close_connection = True
            return
        code, content, body = answer
        self.send_response(code)
        self.send_header("Content-Type", content)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def converted_review(review) -> tuple[int, str, bytes] | None:
    """Return code, content type and body of the response; None closes the connection."""
    conversion = review["request"]
    objects = conversion["objects"]
    # The parts of objects that an apply converts may have no metadata.
    annotations = [((tree.get("metadata") or {}).get("annotations") or {}) for tree in objects]
    fault = next((found for one in annotations if (found := one.get(FAULT))), "")
    only = next((found for one in annotations if (found := one.get("to"))), "")
    version = conversion["desiredAPIVersion"]
    if only and not version.endswith(only):
        fault = ""
    if fault == "close":
        return None
    if fault == "reset":
        return RESET
    if fault in HTTP:
        return HTTP[fault]
    found = [_converted(tree, version, fault) for tree in objects]
    response = {"uid": conversion["uid"], "convertedObjects": found * (2 if fault == "twice" else 1)}
    response |= {"result": RESULTS.get(fault, {"status": "Success"})} | RESPONSES.get(fault, {})
    body = {"kind": review["kind"], "apiVersion": review["apiVersion"], "response": response}
    return 200, "application/json", json.dumps(body | REVIEWS.get(fault, {})).encode()


def _converted(tree, version, fault):
    spec, status = dict(tree.get("spec") or {}), dict(tree.get("status") or {})
    if version.endswith("/v2"):
        if "host" in spec:
            spec["endpoint"] = {"host": spec.pop("host")}
        if "phase" in status:
            status["state"] = status.pop("phase")
    else:
        if "endpoint" in spec:
            endpoint = spec.pop("endpoint") or {}
            spec |= {"host": endpoint["host"]} if "host" in endpoint else {}
        spec.pop("colour", None)
        if "state" in status:
            status["phase"] = status.pop("state")
    found = tree | {"apiVersion": version}
    found |= {name: part for name, part in (("spec", spec), ("status", status)) if name in tree}
    if fault == "spec":
        found["spec"] = spec | {"size": "large", "unknown": 1}
    if "metadata" in tree:
        metadata = tree["metadata"] | METADATA.get(fault, {})
        found["metadata"] = {name: value for name, value in metadata.items() if value is not None}
    return found | OBJECT_FAULTS.get(fault, {})
