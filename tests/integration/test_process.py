"""The API server as a process: TLS, its kubeconfig, signals, and a store that survives a restart."""

import asyncio
import base64
import hashlib
import shutil
import signal
import socket
import ssl
import subprocess
from urllib.parse import urlsplit

import jwt
import orjson
import pytest
import yaml

from tests.support.processes.process import ApiServerProcess, client, tls

pytestmark = pytest.mark.slow

MAPS = "/api/v1/namespaces/default/configmaps"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases?watch=true"
WHO_AM_I = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


@pytest.fixture
def server(tmp_path):
    with ApiServerProcess(tmp_path) as server:
        yield server


def config(name, **data):
    return {"metadata": {"name": name}, "data": data}


async def test_server_is_ready_once_it_announces_serving(server):
    async with client(server, token_="") as anybody:
        for path in ("/readyz", "/livez", "/healthz", "/version"):
            assert (await anybody.get(path)).status == 200


async def test_new_cluster_has_system_objects(server):
    async with client(server) as admin:
        names = {
            path: {item["metadata"]["name"] for item in (await admin.get(path)).body["items"]}
            for path in (
                "/api/v1/namespaces",
                "/api/v1/services",
                "/apis/scheduling.k8s.io/v1/priorityclasses",
                "/apis/networking.k8s.io/v1/servicecidrs",
            )
        }
    assert list(names.values()) == [
        {"default", "kube-system", "kube-public", "kube-node-lease"},
        {"kubernetes"},
        {"system-node-critical", "system-cluster-critical"},
        {"kubernetes"},
    ]


def test_kubectl_uses_written_kubeconfig(server):
    kubectl = shutil.which("kubectl")
    assert kubectl, "this test needs kubectl, as real users have it"
    asked = [kubectl, "--kubeconfig", server.kubeconfig, "get"]
    namespaces = subprocess.run([*asked, "namespaces"], capture_output=True, text=True, check=True)
    assert "kube-system" in namespaces.stdout
    services = subprocess.run([*asked, "apiservices"], capture_output=True, text=True, check=True)
    assert services.stdout.count("Local") == services.stdout.count("True") > 15


def test_tls_san_flag_adds_names_to_certificate(tmp_path):
    with (
        ApiServerProcess(tmp_path, "--tls-san=apiserver,192.0.2.7") as server,
        socket.create_connection(("127.0.0.1", urlsplit(server.url).port)) as connection,
        tls(server.kubeconfig).wrap_socket(connection, server_hostname="apiserver") as shown,
    ):
        names = shown.getpeercert()["subjectAltName"]
    assert {("DNS", "apiserver"), ("IP Address", "192.0.2.7")} <= set(names)


async def test_certificate_names_and_allowed_hosts_are_served(tmp_path):
    flags = ("--tls-san=apiserver", "--allowed-hosts=proxy.example.com", "--bind-address=0.0.0.0")
    hosts = ("apiserver", "kubernetes.default.svc", "proxy.example.com", "192.0.2.9:1", "evil.example")
    with ApiServerProcess(tmp_path, *flags) as server:
        async with client(server) as admin:
            codes = [(await admin.get("/version", Host=host)).status for host in hosts]
        assert codes == [200, 200, 200, 200, 421]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_sigterm_ends_server_in_order(server, number):
    async with client(server) as admin, admin.watch(f"{MAPS}?watch=true") as events:
        await admin.post(MAPS, config("a"))
        assert (await anext(events))["object"]["metadata"]["name"] == "a"
        server.signal(number)
        assert [event async for event in events] == []
    assert await asyncio.to_thread(server.wait) == 0
    assert "Stopped" in server.log[-1]


async def test_request_in_progress_at_sigterm_gets_response(server):
    body = orjson.dumps(config("slow"))
    sending, going = asyncio.Event(), asyncio.Event()

    async def body_in_two_parts():
        yield body[:5]
        sending.set()
        await going.wait()
        yield body[5:]

    async with client(server) as admin:
        answer = asyncio.create_task(admin.send("POST", MAPS, body_in_two_parts()))
        await sending.wait()
        server.signal(signal.SIGTERM)
        await asyncio.to_thread(server.wait_logged, "Stopping")
        going.set()
        assert (await answer).status == 201
    assert await asyncio.to_thread(server.wait) == 0


async def test_readiness_fails_before_shutdown(tmp_path):
    with ApiServerProcess(tmp_path, "--shutdown-delay-duration=1h") as server:
        async with client(server) as admin:
            server.signal(signal.SIGTERM)
            while (await admin.get("/readyz")).status == 200:
                assert (await admin.get(MAPS)).status == 200
            assert (await admin.get("/readyz/shutdown")).status == 500
            assert (await admin.get("/livez")).status == 200
            assert (await admin.post(MAPS, config("late"))).status == 201
        server.signal(signal.SIGTERM)
        assert await asyncio.to_thread(server.wait) == -signal.SIGTERM


async def test_client_certificate_authenticates(server):
    async with client(server, certificate=True, token_="") as admin:
        answer = await admin.post(WHO_AM_I, {})
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate_of(server.kubeconfig))).hexdigest()
    assert answer.body["status"]["userInfo"] == {
        "username": "kubernetes-admin",
        "groups": ["system:masters", "system:authenticated"],
        "extra": {"authentication.kubernetes.io/credential-id": [f"X509SHA256={digest}"]},
    }


def certificate_of(kubeconfig):
    user = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]
    return base64.b64decode(user["client-certificate-data"]).decode()


async def test_unauthenticated_request_is_refused(server):
    async with client(server, token_="guess") as nobody:
        answer = await nobody.get(MAPS)
    assert (answer.status, answer.body["message"], answer.body["reason"]) == (401, *["Unauthorized"] * 2)
    async with client(server, token_="") as anonymous:
        answer = await anonymous.get(MAPS)
    assert (answer.status, answer.body["reason"]) == (403, "Forbidden")
    assert 'User "system:anonymous" cannot list resource "configmaps"' in answer.body["message"]


async def test_service_account_tokens_survive_restart(tmp_path):
    arguments = (tmp_path, f"--data-dir={tmp_path / 'data'}")
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    with ApiServerProcess(*arguments) as server:
        async with client(server) as admin:
            await admin.post(accounts, {"metadata": {"name": "robot"}})
            answer = await admin.post(f"{accounts}/robot/token", {})
        server.stop()
    with ApiServerProcess(*arguments) as server:
        async with client(server, token_=answer.body["status"]["token"]) as robot:
            who = (await robot.post(WHO_AM_I, {})).body["status"]["userInfo"]
    assert who["username"] == "system:serviceaccount:default:robot"


async def test_pod_and_token_flags_apply(tmp_path):
    flags = (
        "--default-not-ready-toleration-seconds=5",
        "--default-unreachable-toleration-seconds=6",
        "--service-account-max-token-expiration=2h",
        "--service-account-extend-token-expiration=false",
    )
    account = "/api/v1/namespaces/default/serviceaccounts"
    pods = "/api/v1/namespaces/default/pods"
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    with ApiServerProcess(tmp_path, *flags) as server:
        async with client(server) as admin:
            await admin.post(account, {"metadata": {"name": "default"}})
            created = (await admin.post(pods, pod)).body
            bound = {"kind": "Pod", "apiVersion": "v1", "name": "a", "uid": created["metadata"]["uid"]}
            lifetimes = []
            for seconds in (3607, 7201):
                asked = {"expirationSeconds": seconds, "boundObjectRef": bound}
                answer = (await admin.post(f"{account}/default/token", {"spec": asked})).body
                lifetimes.append(lifetime_of(answer["status"]["token"]))
    assert [one["tolerationSeconds"] for one in created["spec"]["tolerations"]] == [5, 6]
    assert lifetimes == [3607, 7200]


def lifetime_of(token):
    claims = jwt.decode(token, options={"verify_signature": False})
    return claims["exp"] - claims["iat"]


async def test_token_auth_file_names_users(tmp_path):
    users = tmp_path / "tokens.csv"
    users.write_text('secret,alice,1,"dev,ops"\n')
    with ApiServerProcess(tmp_path, f"--token-auth-file={users}") as server:
        async with client(server, token_="secret") as alice:
            who = (await alice.post(WHO_AM_I, {})).body["status"]["userInfo"]
    assert (who["username"], who["groups"]) == ("alice", ["dev", "ops", "system:authenticated"])


async def test_server_renews_identity_lease(server):
    async with client(server) as admin, admin.watch(LEASES) as leases:
        lease = (await anext(leases))["object"]
    assert lease["metadata"]["labels"]["apiserver.kubernetes.io/identity"] == "kube-apiserver"
    assert lease["spec"]["leaseDurationSeconds"] == 3600


async def test_stored_objects_survive_restart(tmp_path):
    arguments = (tmp_path, f"--data-dir={tmp_path / 'data'}")
    with ApiServerProcess(*arguments) as server:
        async with client(server) as admin:
            created = await admin.post(MAPS, config("a", k="v"))
            namespace = (await admin.get("/api/v1/namespaces/default")).body
        assert server.stop() == 0
    before = server.kubeconfig.read_text()
    with ApiServerProcess(*arguments) as server:
        async with client(server) as admin:
            assert (await admin.get(f"{MAPS}/a")).body == created.body
            assert (await admin.get("/api/v1/namespaces/default")).body == namespace
    authority = next(line for line in before.splitlines() if "certificate-authority-data" in line)
    assert authority in server.kubeconfig.read_text()


@pytest.mark.parametrize("mode", ["AlwaysAllow", "RBAC"])
def test_start_reports_that_every_user_may_do_everything(tmp_path, mode):
    with ApiServerProcess(tmp_path, f"--authorization-mode={mode}") as server:
        assert server.stop() == 0
    lines = [line for line in server.log if "every authenticated user may do everything" in line]
    assert len(lines) == (1 if mode == "AlwaysAllow" else 0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        pytest.param(["--bind-address=192.0.2.1"], "cannot assign", id="an address of another machine"),
        pytest.param(["--token-auth-file=/nowhere"], "/nowhere", id="missing file"),
    ],
)
def test_invalid_start_reports_reason(tmp_path, arguments, says):
    server = ApiServerProcess(tmp_path, *arguments)
    with pytest.raises(Exception, match="(?i)" + says), server:
        pass
    assert server.wait() == 1


@pytest.mark.etcd
async def test_servers_over_one_etcd_share_writes(tmp_path, etcd_url):
    folders = [tmp_path / name for name in "abc"]
    for folder in folders:
        folder.mkdir()
    processes = [ApiServerProcess(folder, f"--etcd-servers={etcd_url}") for folder in folders]
    with processes[0] as one, processes[1] as two, processes[2] as three:
        async with (
            client(one) as writer,
            client(two) as watcher,
            client(three) as reader,
            watcher.watch(f"{MAPS}?watch=true") as events,
        ):
            created = (await writer.post(MAPS, config("a"))).body
            listed = (await reader.get(MAPS)).body["items"]
            assert [item["metadata"]["uid"] for item in listed] == [created["metadata"]["uid"]]
            assert (await anext(events))["object"] == created
