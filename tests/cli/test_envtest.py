"""`mockube envtest` writes launchers that start like envtest's binaries."""

import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import contextmanager

import orjson
import pytest

from mockube.apimachinery.randomness import SystemRandom
from mockube.apiserver.pki.issue import CertificateIssuer, Subject, make_authority
from mockube.component_base.clock import RealClock
from tests.support.stores.etcd_server import free_port

WAIT_TIMEOUT = 60.0
MOCKUBE = (sys.executable, "-P", "-m", "mockube", "envtest")


@pytest.fixture
def assets(tmp_path):
    subprocess.run([*MOCKUBE, tmp_path / "assets"], check=True, capture_output=True)
    return tmp_path / "assets"


@pytest.mark.parametrize("name", ["kube-apiserver", "etcd"])
def test_envtest_binary_prints_help_without_insecure_port(assets, name):
    shown = subprocess.run([assets / name, "--help"], check=True, capture_output=True, text=True)
    assert "--insecure-port" not in shown.stdout


def test_envtest_apiserver_serves_requested_minor(tmp_path):
    subprocess.run([*MOCKUBE, "--kubernetes-version=1.31", tmp_path], check=True, capture_output=True)
    shown = subprocess.run(
        [tmp_path / "kube-apiserver", "--version"], check=True, capture_output=True, text=True
    )
    assert shown.stdout.startswith("Kubernetes v1.31.")
    port, certificates = free_port(), f"--cert-dir={tmp_path}"
    with subprocess.Popen([tmp_path / "kube-apiserver", f"--secure-port={port}", certificates]) as server:
        try:
            url = f"https://127.0.0.1:{port}/version"
            version = orjson.loads(healthy(url, server, context=ssl._create_unverified_context()))
        finally:
            server.send_signal(signal.SIGTERM)
        assert server.wait(10) == 0
    assert (version["minor"], version["gitVersion"]) == ("31", shown.stdout.split()[1])


def test_envtest_etcd_is_healthy_until_sigterm(assets):
    url = f"http://127.0.0.1:{free_port()}"
    flags = [f"--listen-client-urls={url}", f"--advertise-client-urls={url}", "--data-dir=/nowhere"]
    with subprocess.Popen([assets / "etcd", *flags]) as etcd:
        try:
            assert b'"health":"true"' in healthy(f"{url}/health", etcd)
        finally:
            etcd.send_signal(signal.SIGTERM)
        assert etcd.wait(10) == 0


def test_moved_launchers_take_values_as_separate_arguments(assets, tmp_path):
    """As pflag and Go's flag package: `--flag value` and `--flag=value` are the same."""
    moved = assets.rename(tmp_path / "moved elsewhere")
    assert all(str(assets) not in path.read_text() for path in moved.iterdir())
    etcd_url, port, certificates = f"http://127.0.0.1:{free_port()}", str(free_port()), tmp_path / "certs"
    certificates.mkdir()
    etcd_flags = ("-listen-client-urls", etcd_url, "--advertise-client-urls", etcd_url, "--data-dir", "/no")
    flags = ("--etcd-servers", etcd_url, "--cert-dir", certificates, "--secure-port", port, "-v", "2")
    with (
        subprocess.Popen([moved / "etcd", *etcd_flags]) as etcd,
        subprocess.Popen([moved / "kube-apiserver", *flags]) as server,
    ):
        try:
            assert b'"health":"true"' in healthy(f"{etcd_url}/health", etcd)
            url = f"https://127.0.0.1:{port}/version"
            assert healthy(url, server, context=ssl._create_unverified_context())
        finally:
            for process in (etcd, server):
                process.send_signal(signal.SIGTERM)
        assert (etcd.wait(10), server.wait(10)) == (0, 0)
    assert (certificates / "mockube").is_dir()


def test_launcher_names_flag_without_value(assets):
    done = subprocess.run(
        [assets / "kube-apiserver", "--cert-dir"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, "flag needs an argument: --cert-dir\n")


@pytest.fixture
def certificates(tmp_path):
    """A folder as envtest makes it: a CA of clients of its own, and a certificate that is not for this machine's address."""
    folder = tmp_path / "certs"
    folder.mkdir()
    now = RealClock().now()
    clients, servers = (
        make_authority(name, now=now, random=SystemRandom()) for name in ("clients", "servers")
    )
    pair = CertificateIssuer(servers, now=now, random=SystemRandom()).issue(
        Subject(name="server", hosts=("elsewhere.test",))
    )
    (folder / "apiserver.crt").write_bytes(pair.certificate)
    (folder / "apiserver.key").write_bytes(pair.key)
    (folder / "clients.crt").write_bytes(clients.certificate)
    (folder / "tokens.csv").write_text('secret,admin,1,"system:masters"\n')
    return folder


@contextmanager
def server_with_controllers(assets, certificates, *flags, **options):
    """Start the launcher; yield it and a function that reads a path."""
    port = free_port()
    command = [
        *(assets / "kube-apiserver", f"--cert-dir={certificates}"),
        *("--bind-address=127.0.0.1", f"--secure-port={port}"),
        *(
            f"--client-ca-file={certificates / 'clients.crt'}",
            f"--token-auth-file={certificates / 'tokens.csv'}",
        ),
        *flags,
    ]

    def read(path):
        """Return the lines of a response, which a watch sends one by one."""
        headers = {"Authorization": "Bearer secret"}
        ready, request = (
            urllib.request.Request(f"https://127.0.0.1:{port}{each}", headers=headers)
            for each in ("/readyz", path)
        )
        context = ssl._create_unverified_context()
        healthy(ready, server, context=context)
        with urllib.request.urlopen(request, timeout=WAIT_TIMEOUT, context=context) as answer:
            yield from answer

    with subprocess.Popen(command, **options) as server:
        try:
            yield server, read
        finally:
            server.kill()


def wait_for_ready_node(read):
    for line in read("/api/v1/nodes?watch=true"):
        conditions = orjson.loads(line)["object"]["status"].get("conditions", ())
        if any(one["type"] == "Ready" and one["status"] == "True" for one in conditions):
            return
    raise AssertionError("the watch has ended")


@pytest.fixture
def assets_with_controllers(tmp_path):
    command = [*MOCKUBE, "--with-controllers", tmp_path / "assets"]
    subprocess.run(command, check=True, capture_output=True)
    return tmp_path / "assets"


@pytest.mark.parametrize("modes", ["RBAC", "Node,RBAC", "Node", "AlwaysAllow"])
def test_controllers_run_with_any_ca_certificate_and_authorization(
    assets_with_controllers, certificates, modes
):
    flag = f"--authorization-mode={modes}"
    with server_with_controllers(assets_with_controllers, certificates, flag) as (server, read):
        wait_for_ready_node(read)
        server.send_signal(signal.SIGTERM)
        assert server.wait(20) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_controllers_end_with_server(assets_with_controllers, certificates, number):
    """Their output has an end only when every process has ended."""
    with server_with_controllers(
        assets_with_controllers, certificates, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as (server, read):
        wait_for_ready_node(read)
        server.send_signal(number)
        server.communicate(timeout=30)


def healthy(url, process, context=None):
    while process.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5, context=context) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            error.close()
        except OSError:
            continue
    raise AssertionError("it has ended")


def test_envtest_does_not_replace_foreign_file(tmp_path):
    (tmp_path / "etcd").write_text("a real one")
    done = subprocess.run([*MOCKUBE, tmp_path], capture_output=True, text=True, check=False)
    assert (done.returncode, (tmp_path / "etcd").read_text()) == (1, "a real one")
    assert "was not written by mockube envtest" in done.stderr
