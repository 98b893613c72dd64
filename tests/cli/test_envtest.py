"""`mockube envtest` writes launchers that start like envtest's binaries."""

import signal
import ssl
import subprocess
import sys
import urllib.error
import urllib.request

import orjson
import pytest

from tests.support.stores.etcd_server import free_port

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
