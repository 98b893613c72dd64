"""kube-webhook-certgen, of the hooks of charts with webhooks: it makes a certificate's Secret, and patches the CA into webhooks."""

import base64
from collections.abc import Generator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from mockube.container_runtime.simulated.shell.options import (
    ProgramOptions,
    simulated_options,
)
from mockube.container_runtime.simulated.shell.process import Effect, Output, Process, Run, UnknownProgram

from .kubectl.client import ApiClient, ServerError, Work
from .kubectl.connection import KubectlError, connection_of_pod

_OPTIONS: Final = {
    "--host": "host=",
    "--namespace": "namespace=",
    "--secret-name": "secret-name=",
    "--secret-type": "secret-type=",
    "--cert-name": "cert-name=",
    "--key-name": "key-name=",
    "--webhook-name": "webhook-name=",
    "--apiservice-name": "apiservice-name=",
    "--patch-validating": "validating",
    "--patch-mutating": "mutating",
    "--patch-failure-policy": "failure-policy=",
    "--log-format": "ignored=",
    "--log-level": "ignored=",
}
_CONFIGURATIONS: Final = "/apis/admissionregistration.k8s.io/v1"
_LIFETIME: Final = timedelta(days=36500)
_BACKDATE: Final = timedelta(minutes=5)


def certgen(process: Process) -> Run:
    options = simulated_options(process, _OPTIONS, strips_equals=True)
    client = ApiClient(process, connection_of_pod(process), options.get("namespace"))
    commands = {"create": _create, "patch": _patch}
    if len(options.arguments) != 1 or options.arguments[0] not in commands:
        raise UnknownProgram(" ".join(process.argv[:2]))
    try:
        yield from commands[options.arguments[0]](process, client, options)
    except KubectlError as error:
        yield _log("fatal", str(error))
        return 1
    return 0


def _log(level: str, message: str) -> Output:
    return Output(2, f'level={level} msg="{message}"\n'.encode())


def _create(
    process: Process, client: ApiClient, options: ProgramOptions
) -> Generator[Effect, bytes | None, None]:
    """Create the Secret with a new certificate, unless there is one."""
    name = options.get("secret-name")
    if (yield from _authority(client, name)) is not None:
        yield _log("info", "secret already exists")
        return
    yield _log("info", "creating new secret")
    hosts = [host for host in options.get("host").split(",") if host]
    certificate, key = _make_certificate(hosts, process.host.now_running())
    data = {
        "ca": certificate,
        options.get("cert-name", "cert"): certificate,
        options.get("key-name", "key"): key,
    }
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name},
        "type": options.get("secret-type", "Opaque"),
        "data": {entry: base64.b64encode(content).decode() for entry, content in data.items()},
    }
    yield from client.send("POST", f"/api/v1/namespaces/{client.namespace}/secrets", body=body)


def _authority(client: ApiClient, name: str) -> Work[str | None]:
    """Return the CA in a Secret as base64; None if there is no Secret."""
    try:
        secret = yield from client.send("GET", f"/api/v1/namespaces/{client.namespace}/secrets/{name}")
    except ServerError as error:
        if error.reason == "NotFound":
            return None
        raise
    return str((secret.get("data") or {}).get("ca") or "")


def _make_certificate(hosts: Sequence[str], now: datetime) -> tuple[bytes, bytes]:
    """Return a certificate that signs itself, and its key, as PEM."""
    from cryptography import x509  # noqa: PLC0415 - for few
    from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.ORGANIZATION_NAME, "nil1")])
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - _BACKDATE)
        .not_valid_after(now + _LIFETIME)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), private


def _patch(_: Process, client: ApiClient, options: ProgramOptions) -> Generator[Effect, bytes | None, None]:
    """Set the CA, and the failure policy, of all webhooks of the configurations."""
    name = options.get("webhook-name")
    authority = yield from _authority(client, options.get("secret-name"))
    if authority is None:
        raise KubectlError(f"no secret with '{options.get('secret-name')}' in '{client.namespace}'")
    for kind in ("validating", "mutating"):
        if name and options.get(kind, "true") in ("", "true"):
            yield _log("info", f"patching webhook configurations '{name}' {kind}")
            path = f"{_CONFIGURATIONS}/{kind}webhookconfigurations/{name}"
            yield from _patch_configuration(client, path, authority, options.get("failure-policy"))
    if options.get("apiservice-name"):
        path = f"/apis/apiregistration.k8s.io/v1/apiservices/{options.get('apiservice-name')}"
        service = yield from client.send("GET", path)
        spec = {**service["spec"], "caBundle": authority, "insecureSkipTLSVerify": False}
        yield from client.send("PUT", path, body={**service, "spec": spec})
    yield _log("info", "Patched hook(s)")


def _patch_configuration(
    client: ApiClient, path: str, authority: str, failure_policy: str
) -> Generator[Effect, bytes | None, None]:
    configuration = yield from client.send("GET", path)
    webhooks: list[dict[str, Any]] = [
        {
            **webhook,
            "clientConfig": {**(webhook.get("clientConfig") or {}), "caBundle": authority},
            **({"failurePolicy": failure_policy} if failure_policy else {}),
        }
        for webhook in configuration.get("webhooks") or ()
    ]
    # Charts' roles let it update, and not patch.
    yield from client.send("PUT", path, body={**configuration, "webhooks": webhooks})
