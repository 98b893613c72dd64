"""A webhook over TLS whose path selects its response, and which records the requests."""

import asyncio
import base64
import contextlib
import ipaddress
import socket
import ssl
import struct
from datetime import timedelta

import orjson
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mockube.component_base.clock import RealClock

MUTATING = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
PATH = "/api/v1/namespaces/default/configmaps"
MAP = {"metadata": {"name": "a"}, "data": {"x": "y"}}
FAILED = 'Internal error occurred: failed calling webhook "h.example.com": '
CONFIG_MAPS = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}


async def break_off(request, path):
    """End the connection within the body, or reset it before the head."""
    if path == "lost":
        linger = struct.pack("ii", 1, 0)
        request.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        request.transport.abort()
        return web.Response()
    response = web.StreamResponse(headers={"Content-Length": "100"})
    await response.prepare(request)
    await response.write(b"abc")
    request.transport.close()
    return response


def label(review, **labels):
    present = review["request"]["object"]["metadata"].get("labels", {})
    return patch([{"op": "add", "path": "/metadata/labels", "value": present | labels}])


def patch(operations, kind="JSONPatch"):
    return {"patch": base64.b64encode(orjson.dumps(operations)).decode(), "patchType": kind}


def increment_count_label(review):
    number = review["request"]["object"]["metadata"].get("labels", {}).get("count", "0")
    return label(review, count=str(int(number) + 1))


RESPONSES = {
    "ok": lambda _: {},
    "deny": lambda _: {"allowed": False},
    "deny-message": lambda _: {
        "allowed": False,
        "status": {"message": "no way", "code": 403, "reason": "Forbidden"},
    },
    "deny-reason": lambda _: {"allowed": False, "status": {"reason": "TooBad"}},
    "deny-success": lambda _: {
        "allowed": False,
        "status": {"message": "m", "status": "Success", "code": 200},
    },
    "warn": lambda _: {"warnings": ["careful"], "auditAnnotations": {"k": "v"}},
    "wrong-uid": lambda _: {"uid": "x"},
    "label": lambda review: label(review, hooked="yes"),
    "second": lambda review: label(review, second="yes"),
    "count": increment_count_label,
    "ask-for-bob": lambda _: patch([{"op": "replace", "path": "/spec/user", "value": "bob"}]),
    "bad-path": lambda _: patch([{"op": "remove", "path": "/data/none"}]),
    "mistyped": lambda _: {"allowed": "yes"},
    "unknown-field": lambda _: patch([{"op": "add", "path": "/other", "value": "text"}]),
    "other-namespace": lambda _: patch([{"op": "add", "path": "/metadata/namespace", "value": "other"}]),
    "bad-field": lambda _: patch([{"op": "add", "path": "/data", "value": "text"}]),
    "patch-without-type": lambda _: {"patch": base64.b64encode(b"[]").decode()},
    "label-without-type": lambda review: {"patch": label(review, hooked="yes")["patch"]},
    "label-of-other-type": lambda review: label(review, hooked="yes") | {"patchType": "MergePatch"},
    "bad-base64": lambda _: {"patch": "!!", "patchType": "JSONPatch"},
    "type-without-patch": lambda _: {"patchType": "JSONPatch"},
    "other-patch": lambda _: patch([{}], "MergePatch"),
    "container": lambda _: patch(
        [{"op": "add", "path": "/spec/containers/-", "value": {"name": "s", "image": "s"}}]
    ),
}
TYPES = {
    "wrong-version": {"apiVersion": "admission.k8s.io/v1beta1"},
    "newer-version": {"apiVersion": "admission.k8s.io/v1"},
    "other-group": {"apiVersion": "example.com/v1"},
    "no-version": {"apiVersion": ""},
    "no-type": {"apiVersion": "", "kind": ""},
    "wrong-kind": {"kind": "Other"},
    "no-kind": {"kind": ""},
}


async def register(client, kind, *hooks, name="c", annotations=None):
    """Create a configuration of webhooks."""
    metadata = {"name": name, "annotations": annotations or {}}
    answer = await client.post(kind, {"metadata": metadata, "webhooks": hooks})
    assert answer.status == 201, answer.body


def warnings(answer):
    return [orjson.loads(line.split(" ", 2)[2]) for line in answer.headers.getall("Warning", [])]


def labels(answer):
    return answer.body["metadata"].get("labels", {})


class WebhookServer:
    def __init__(self, port, authority):
        self.port = port
        self.bundle = base64.b64encode(authority).decode()
        self.requests = []
        """Path and query of each request, and its review."""
        self.headers = []
        """The headers of each request."""
        self.versions = []
        """The version of each review."""
        self.never = asyncio.Event()
        self.before_answer = None
        """A coroutine function that is awaited before each response."""

    def hook(self, path, name="h.example.com", **spec):
        """Return one webhook of a configuration."""
        url = f"https://127.0.0.1:{self.port}/{path}"
        client = {"url": url, "caBundle": self.bundle}
        common = {"sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 1}
        return {"name": name, "clientConfig": client, "rules": [CONFIG_MAPS], **common, **spec}

    async def answer(self, request):
        path, review = request.match_info["path"], orjson.loads(await request.read())
        self.requests.append((str(request.rel_url), review["request"]))
        self.headers.append(request.headers)
        self.versions.append(review["apiVersion"])
        if self.before_answer is not None:
            await self.before_answer()
        if path == "slow":
            await self.never.wait()
        if path == "redirect":
            raise web.HTTPTemporaryRedirect("/ok")
        if path in ("500", "404"):
            return web.Response(status=int(path), text="broken")
        texts = {"garbage": b"{", "bracket": b"[", "empty": b"", "huge": b" " * (17 << 20)}
        if path in texts:
            return web.Response(body=texts[path], content_type="application/json")
        if path in ("short", "lost"):
            return await break_off(request, path)
        if path == "status":
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "no way"}
            return web.json_response(status, status=500)
        response = {"uid": review["request"]["uid"], "allowed": True}
        response |= RESPONSES.get(path, RESPONSES["ok"])(review)
        body = {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}
        body |= TYPES.get(path, {})
        if path == "no-response":
            del body["response"]
        return web.json_response(body)


@contextlib.asynccontextmanager
async def webhook_server(tmp_path, *names):
    context, authority = credentials(tmp_path, names)
    server = WebhookServer(0, authority)
    app = web.Application()
    app.router.add_post("/{path:.*}", server.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        server.port = runner.addresses[0][1]
        yield server
    finally:
        server.never.set()
        await runner.cleanup()


def credentials(folder, names=()):
    """Return a server's TLS context, for 127.0.0.1 and some names, and the CA that signed its certificate."""
    authority, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "webhook-ca")])
    root = certificate(issuer, authority, issuer, authority, is_authority=True)
    alternatives = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), *map(x509.DNSName, names)]
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "webhook")])
    leaf = certificate(subject, key, issuer, authority, alternatives=alternatives)
    (folder / "webhook.crt").write_bytes(leaf.public_bytes(serialization.Encoding.PEM))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "webhook.key").write_bytes(private)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "webhook.crt", folder / "webhook.key")
    return context, root.public_bytes(serialization.Encoding.PEM)


def certificate(subject, key, issuer, signer, *, is_authority=False, alternatives=()):
    now = RealClock().now()
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
    )
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return builder.sign(signer, hashes.SHA256())
