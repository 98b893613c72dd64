"""Kubernetes' own components as processes, where the machine has them.

MOCKUBE_REAL_KUBERNETES is a folder with kube-apiserver, kube-controller-manager and kube-scheduler, as
`python -m tools.minors build` makes them; without it what needs them is skipped by name.
"""

import os
import re
from pathlib import Path

import orjson
import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.support.processes.process import Process
from tests.support.stores.etcd_server import free_port

VARIABLE = "MOCKUBE_REAL_KUBERNETES"
USERS = {
    "admin": "system:masters",
    "system:kube-controller-manager": "",
    "system:kube-scheduler": "",
}
"""Users, whose tokens are their names, and their groups."""


_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


def folder():
    """Return the folder of the components."""
    if VARIABLE not in os.environ:
        pytest.skip(f"{VARIABLE} does not say where Kubernetes' own components are")
    return Path(os.environ[VARIABLE])


def require_folder():
    """End a program that needs the components, with the reason; tests are skipped by `folder` instead."""
    if VARIABLE not in os.environ:
        raise SystemExit(
            f"{VARIABLE} has to name the folder of kube-apiserver: docs/interoperability.md describes how to build it"
        )


def write_tokens(path):
    path.write_text("".join(f'{name},{name},{name},"{group}"\n' for name, group in USERS.items()))
    return path


def write_kubeconfig(path, url, authority, user):
    """Write a kubeconfig for a user of the tokens."""
    here = {"cluster": "here", "user": user}
    tree = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": {"server": url, "certificate-authority": str(authority)}}],
        "users": [{"name": user, "user": {"token": user}}],
        "contexts": [{"name": "here", "context": here}],
        "current-context": "here",
    }
    path.write_text(yaml.safe_dump(tree))
    return path


class RealProcess(Process):
    NAME = ""

    def _program(self):
        return [folder() / self.NAME]


class RealApiServer(RealProcess):
    """On a real etcd, with RBAC and upstream's roles; the audit log is the file `audit` in its folder."""

    NAME = "kube-apiserver"
    READY = re.compile(r"Serving securely on ")

    def __init__(self, home, etcd, *, tokens=None, flags=()):
        port = free_port()
        self.url = f"https://127.0.0.1:{port}"
        self.authority = home / "apiserver.crt"
        policy, key = home / "policy.yaml", home / "key.pem"
        policy.write_bytes(orjson.dumps(_AUDIT_POLICY))
        key.write_bytes(_private_key())
        settings = {
            "etcd-servers": etcd.url,
            "secure-port": port,
            "bind-address": "127.0.0.1",
            "cert-dir": home,
            "token-auth-file": tokens or write_tokens(home / "tokens.csv"),
            "authorization-mode": "Node,RBAC",
            "service-cluster-ip-range": "10.0.0.0/16",
            "service-account-issuer": "https://kubernetes.default.svc",
            "service-account-key-file": key,
            "service-account-signing-key-file": key,
            "audit-log-path": home / "audit",
            "audit-policy-file": policy,
        }
        super().__init__(*(f"--{name}={value}" for name, value in settings.items()), *flags)


class RealManager(RealProcess):
    """Ready when it is the leader."""

    NAME = "kube-controller-manager"
    READY = re.compile(r"Successfully acquired lease")

    def __init__(self, home, kubeconfig, flags=()):
        key = home / "key.pem"
        key.write_bytes(_private_key())
        super().__init__(
            f"--kubeconfig={kubeconfig}",
            "--use-service-account-credentials",
            f"--service-account-private-key-file={key}",
            f"--cert-dir={home}",
            "--secure-port=0",
            *flags,
        )


class RealScheduler(RealProcess):
    """Ready when it is the leader."""

    NAME = "kube-scheduler"
    READY = re.compile(r"Successfully acquired lease")

    def __init__(self, kubeconfig, *flags):
        super().__init__(f"--kubeconfig={kubeconfig}", "--secure-port=0", *flags)


def wait_ready(server, kubectl):
    """Wait until the server has created what it needs, such as its roles, or has ended."""
    while kubectl.attempt("get", "--raw=/readyz").returncode:
        assert server.is_running, "".join(server.log)


def _private_key():
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
