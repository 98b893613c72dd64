"""Authorization by ABAC and authentication by a front proxy, compared with recordings of kube-apiserver 1.36.3.

The requests are in `abac_and_front_proxy.jsonl`, with the credentials and headers of each; the policies in
`abac_policies.jsonl`.
"""

import contextlib
import ssl
from pathlib import Path

import aiohttp
import orjson
import pytest

from mockube.apimachinery.randomness import SystemRandom
from mockube.apiserver.pki.cert_dir import AUTHORITY, Folder
from mockube.apiserver.pki.issue import CertificateIssuer, Subject, make_authority
from mockube.component_base.clock import RealClock
from tests.support.processes.process import ApiServerProcess

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
RECORDED = [*map(orjson.loads, (HERE / "abac_and_front_proxy.jsonl").read_bytes().splitlines())]
TOKENS = """admin,admin,admin,"system:masters"
alice,alice,alice,"dev"
bob,bob,bob
dave,dave,dave
eve,eve,eve
"""
NOW = RealClock().now()


def flags(folder):
    return (
        "--kubernetes-version=1.36",  # later reasons name the authorizer
        f"--cert-dir={folder / 'pki'}",
        f"--token-auth-file={folder / 'tokens'}",
        "--advertise-address=127.0.0.1",  # as in envtest: Endpoints reject this address, and the server ignores that
        "--authorization-mode=ABAC",
        f"--authorization-policy-file={HERE / 'abac_policies.jsonl'}",
        f"--requestheader-client-ca-file={folder / 'proxies.pem'}",
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User,X-Other-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-uid-headers=X-Remote-Uid",
    )


def contexts(folder, proxies):
    """Map each client's name to the client certificate that it presents."""
    clients = Folder(path=folder / "pki").pair(AUTHORITY)
    subjects = {
        "front": (proxies, Subject(name="front-proxy")),
        "other": (proxies, Subject(name="other")),
        "user": (clients, Subject(name="carol", groups=("dev",))),
    }
    made = {None: ssl._create_unverified_context()}
    for name, (authority, subject) in subjects.items():
        pair = CertificateIssuer(authority, now=NOW, random=SystemRandom()).issue(subject)
        (folder / name).write_bytes(pair.certificate + pair.key)
        made[name] = ssl._create_unverified_context()
        made[name].load_cert_chain(folder / name)
    return made


async def answer(url, context, recorded):
    method, path, body = recorded["request"]
    headers = [tuple(one) for one in recorded.get("headers", ())]
    if recorded.get("token"):
        headers.append(("Authorization", f"Bearer {recorded['token']}"))
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session,
        session.request(method, url + path, json=body, headers=headers) as response,
    ):
        raw = await response.read()
        is_json = response.content_type == "application/json"
        return response.status, recorded_part(orjson.loads(raw), path) if is_json else raw.decode()


def recorded_part(tree, path):
    """Return the part of a response that is recorded."""
    if isinstance(tree.get("status"), dict):
        user = tree["status"].get("userInfo", {})
        if "authentication.kubernetes.io/credential-id" in user.get("extra", {}):
            del user["extra"]
        return {"status": tree["status"]}
    if tree.get("kind") == "Status":
        return {name: tree.get(name) for name in ("reason", "message")}
    if path == "/version":
        return {}
    return {"kind": tree.get("kind")} | ({"items": len(tree["items"])} if "clusterroles" in path else {})


async def test_responses_match_recording_of_real_server(tmp_path):
    proxies = make_authority("proxies", now=NOW, random=SystemRandom())
    (tmp_path / "proxies.pem").write_bytes(proxies.certificate)
    (tmp_path / "tokens").write_text(TOKENS)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(ApiServerProcess(tmp_path, *flags(tmp_path)))
        connect, different = contexts(tmp_path, proxies), {}
        for namespace in ("rt-a", "rt-b"):
            creation = {
                "request": ("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}}),
                "token": "admin",
            }
            await answer(server.url, connect[None], creation)
        for one in RECORDED:
            found = await answer(server.url, connect[one.get("cert")], one)
            if found != (one["code"], one["answer"]):
                different[one["name"]] = found
        assert different == {}
        healthy = {"request": ("GET", "/readyz/poststarthook/rbac/bootstrap-roles", None), "token": "admin"}
        assert (await answer(server.url, connect[None], healthy))[0] == 404
