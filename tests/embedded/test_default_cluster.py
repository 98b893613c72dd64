"""`as_default`: client libraries use the cluster, and no request reaches the cluster of the developer."""

import asyncio
import concurrent.futures
import http.server
import os
import shutil
import socket
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import kopf._core.intents.piggybacking
import kr8s
import kubernetes.config.kube_config
import kubernetes_asyncio.config.kube_config
import lightkube.core.generic_client
import orjson
import pytest
import yaml
from kubernetes import client as official
from kubernetes_asyncio import client as awaited
from lightkube.config.kubeconfig import KubeConfig as LightkubeConfig
from lightkube.resources.core_v1 import Node

from mockube import Cluster, NotStarted, connect
from tests.support import default_clients
from tests.support.default_clients import REQUESTS, send
from tests.support.processes.downloads import fetch
from tools.packages import ROOT

pytestmark = [
    # These clients leave connections open and warn about Kubernetes versions.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:Kubernetes version:UserWarning"),
]

CONNECTION_REQUESTS = (
    default_clients.kubernetes_without_loading,
    default_clients.kubernetes_loaded,
    default_clients.kubernetes_asyncio_without_loading,
    default_clients.kr8s_blocking,
    default_clients.lightkube,
)
PYKUBE = "pykube-ng==23.6.0"


class Decoy(http.server.ThreadingHTTPServer):
    """A server in place of the developer's cluster. It records the paths of requests, and answers 500."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _DecoyHandler)
        self.requests = []
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.thread = threading.Thread(target=self.serve_forever)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.thread.join()
        self.server_close()


class _DecoyHandler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # clients keep their connections

    def do_GET(self):
        self.server.requests.append(self.path)
        self.send_response(500)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Print nothing."""


def kubeconfig(url):
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "mine", "cluster": {"server": url}}],
            "users": [{"name": "mine", "user": {"token": "secret"}}],
            "contexts": [{"name": "mine", "context": {"cluster": "mine", "user": "mine"}}],
            "current-context": "mine",
        }
    )


@pytest.fixture
def decoy(tmp_path, monkeypatch):
    """The developer's cluster: that of ~/.kube/config, of $KUBECONFIG, and of the pod of this process."""
    with Decoy() as server:
        for file in (tmp_path / ".kube/config", tmp_path / "kubeconfig"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(kubeconfig(server.url))
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.server_port))
        yield server


class Configured:
    """A block in which the libraries were configured for another cluster, by their own functions."""

    def __init__(self, url):
        self._url = url

    def __enter__(self):
        self._former = official.Configuration._default, awaited.Configuration._default
        official.ApiClient.set_default(official.ApiClient(official.Configuration(host=self._url)))
        official.Configuration.set_default(official.Configuration(host=self._url))
        awaited.Configuration.set_default(awaited.Configuration(host=self._url))
        self._values = _values()
        return self

    def __exit__(self, *_):
        official.Configuration._default, awaited.Configuration._default = self._former
        official.ApiClient.set_default(None)

    def count_same(self):
        """Return the number of values that the block has not changed."""
        return sum(value == self._values[name] for name, value in _values().items())

    def assert_same(self):
        assert _values() == self._values
        assert not any(
            type(finder).__module__.startswith("mockube.default_cluster") for finder in sys.meta_path
        )


def _values():
    """Return every value that a block changes, by name."""
    return {
        "environment": {name: os.environ.get(name) for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST")},
        "kubernetes": kubernetes.config.KUBE_CONFIG_DEFAULT_LOCATION,
        "kubernetes loader": kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION,
        "kubernetes configuration": official.Configuration.get_default().host,
        "kubernetes client": official.ApiClient.get_default().configuration.host,
        "kubernetes_asyncio": kubernetes_asyncio.config.KUBE_CONFIG_DEFAULT_LOCATION,
        "kubernetes_asyncio loader": kubernetes_asyncio.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION,
        "kubernetes_asyncio configuration": awaited.Configuration.get_default().host,
        "kr8s": id(kr8s.Api._instances),
        "lightkube": lightkube.core.generic_client.DEFAULT_KUBECONFIG,
        "lightkube loader": lightkube.config.kubeconfig.DEFAULT_KUBECONFIG,
        "lightkube service account": LightkubeConfig.from_service_account.__func__.__defaults__,
        "lightkube environment": LightkubeConfig.from_env.__func__.__defaults__,
        "kopf": kopf._core.intents.piggybacking.os,
        "socket": (socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo),
    }


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda function: function.__name__)
def test_library_that_was_imported_before_uses_default(cluster, decoy, request_):
    with cluster.as_default():
        assert send(request_) == cluster.url
    assert "kopf" in request_.__name__ or cluster.calls(resource="nodes", verb="list")
    assert decoy.requests == []


@pytest.mark.parametrize("order", ["before", "inside"])
def test_libraries_of_new_process_use_default(decoy, order):
    result = run_program([], order)
    assert result["urls"] == dict.fromkeys(result["urls"], result["cluster"])
    assert len(result["urls"]) == len(REQUESTS)
    assert result["locations"] == [os.environ["KUBECONFIG"]] * 4
    assert decoy.requests == []


@pytest.mark.parametrize("order", ["before", "inside"])
def test_libraries_in_pod_use_default(decoy, tmp_path, order):
    """The process has the files of a service account, as a CI job in a pod."""
    folder = "/var/run/secrets/kubernetes.io/serviceaccount"
    files = f'mkdir -p {folder}; cd {folder}; for name in token namespace ca.crt; do echo x >$name; done; cd "$OLDPWD"'
    script = f'set -e; mount -t tmpfs none /var/run; {files}; exec "$@"'
    in_pod = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]
    if shutil.which("unshare") is None or subprocess.run([*in_pod, "true"], check=False).returncode:
        pytest.skip("this machine allows no mount namespaces")
    uv = str(Path(sys.executable).with_name("uv"))
    fetch(
        tmp_path, uv, "pip", "install", "--python", sys.executable, "--target", str(tmp_path / "site"), PYKUBE
    )
    result = run_program(in_pod, order, PYTHONPATH=os.pathsep.join((str(ROOT), str(tmp_path / "site"))))
    assert result["urls"] == dict.fromkeys(result["urls"], result["cluster"])
    assert len(result["urls"]) == len(REQUESTS) + len(default_clients.PYKUBE_REQUESTS)
    assert decoy.requests == []


def run_program(prefix, order, **environment):
    done = subprocess.run(
        [*prefix, sys.executable, "-m", "tests.support.default_clients", order],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=90,
    )
    return orjson.loads(done.stdout.splitlines()[-1])


def test_defaults_are_restored_after_exception(cluster, decoy):
    with Configured(decoy.url) as configured:
        with pytest.raises(ZeroDivisionError), cluster.as_default():
            1 / configured.count_same()  # it is 0
        configured.assert_same()
    assert decoy.requests == []


def test_cached_client_of_other_cluster_is_not_default(cluster, decoy):
    """kr8s returns any client that it has if the arguments name no cluster."""
    kr8s.Api._instances.clear()  # clients of the clusters of other tests
    with Cluster(nodes=1) as other:
        earlier = other.kr8s()
        with cluster.as_default():
            assert kr8s.api().auth.server == cluster.url
        assert kr8s.api() is earlier


def test_nested_blocks_restore_outer_default(cluster, decoy):
    with Cluster(nodes=0) as inner, cluster.as_default():
        with inner.as_default():
            assert send(default_clients.kubernetes_loaded) == inner.url
            official.CoreV1Api(cluster.kubernetes()).list_node()
        assert send(default_clients.kubernetes_without_loading) == cluster.url
        assert os.environ["KUBECONFIG"] == str(cluster.kubeconfig)
    assert decoy.requests == []


def test_default_is_of_block_that_began_last(cluster, decoy):
    """Blocks of threads end in any order."""
    with Configured(decoy.url) as configured, Cluster(nodes=1) as other:
        with ExitStack() as first, ExitStack() as second:
            first.enter_context(cluster.as_default())
            second.enter_context(other.as_default())
            first.close()
            assert send(default_clients.lightkube) == other.url
        configured.assert_same()


def test_blocks_of_threads_restore_defaults(cluster, decoy):
    def enter_blocks():
        for _ in range(50):
            with cluster.as_default():
                urls.add(official.ApiClient().configuration.host)

    urls = set()
    with Configured(decoy.url) as configured:
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            for running in [threads.submit(enter_blocks) for _ in range(8)]:
                running.result()
        configured.assert_same()
    assert urls == {cluster.url}


async def test_default_of_asynchronous_block(decoy):
    async with Cluster(nodes=1) as cluster:
        async with cluster.as_default():
            assert await default_clients.kubernetes_asyncio_loaded() == cluster.url
        assert os.environ["KUBECONFIG"] != str(cluster.kubeconfig)
    assert decoy.requests == []


def test_child_process_uses_default(cluster, decoy):
    with cluster.as_default():
        program = "from tests.support.default_clients import *; print(send(kubernetes_loaded))"
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
    assert done.stdout.strip() == cluster.url
    assert decoy.requests == []


def test_connection_is_default(cluster, decoy, tmp_path):
    tree = yaml.safe_load(cluster.kubeconfig.read_text())
    tree["contexts"].append({"name": "other", "context": {"cluster": "missing", "user": "missing"}})
    (chosen,) = {context["name"] for context in tree["contexts"]} - {"other"}
    tree["current-context"] = "other"
    file = tmp_path / "two-contexts"
    file.write_text(yaml.safe_dump(tree))
    with (
        connect(kubeconfig=cluster.kubeconfig) as plain,
        connect(kubeconfig=file, context=chosen) as with_context,
    ):
        for connection in (plain, with_context, with_context.awaited):
            with connection.as_default():
                assert {send(request) for request in CONNECTION_REQUESTS} == {cluster.url}
    assert decoy.requests == []


def test_connect_in_block_is_to_default(cluster, decoy):
    with cluster.as_default(), connect() as connection:
        assert connection.url == cluster.url


def earlier_official_client(decoy):
    configuration = official.Configuration(host=decoy.url)
    configuration.retries = False
    return official.CoreV1Api(official.ApiClient(configuration)).list_node


def official_client_of_file(_):
    def send_request():
        core = official.CoreV1Api(kubernetes.config.new_client_from_config("~/.kube/config"))
        core.list_node()

    return send_request


def kr8s_client_of_file(_):
    return lambda: kr8s.api(kubeconfig=str(Path("~/.kube/config").expanduser()))


def earlier_lightkube_client(_):
    client = lightkube.Client(LightkubeConfig.from_file("~/.kube/config"))
    return lambda: [*client.list(Node)]


def earlier_asynchronous_client(decoy):
    async def send_request():
        async with awaited.ApiClient(awaited.Configuration(host=decoy.url)) as api:
            await awaited.CoreV1Api(api).list_node()

    return lambda: asyncio.run(send_request())


@pytest.mark.parametrize(
    "make_request",
    [
        earlier_official_client,
        official_client_of_file,
        kr8s_client_of_file,
        earlier_lightkube_client,
        earlier_asynchronous_client,
    ],
    ids=lambda function: function.__name__,
)
def test_client_of_own_cluster_is_refused(cluster, decoy, make_request):
    send_request = make_request(decoy)
    with pytest.raises(Exception, match="500"):
        send_request()
    decoy.requests.clear()
    with cluster.as_default(), pytest.raises(Exception) as caught:  # noqa: PT011 - see below
        send_request()
    assert decoy.requests == []
    assert any(
        "is not used while a cluster of mockube is the default" in str(error)
        for error in causes(caught.value)
    )
    with pytest.raises(Exception, match="500"):
        send_request()
    assert decoy.requests


def causes(error):
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


@pytest.mark.parametrize(
    ("server", "address"),
    [
        pytest.param("https://api.example.com", ("API.example.com", 443), id="name without port"),
        pytest.param("https://localhost:6443", ("127.0.0.1", 6443), id="address of localhost"),
        pytest.param("https://[0::1]:6443/x", ("::1", 6443, 0, 0), id="IPv6"),
    ],
)
def test_address_of_own_cluster_is_refused(cluster, decoy, server, address):
    Path(os.environ["KUBECONFIG"]).write_text(kubeconfig(server))
    with cluster.as_default():
        with pytest.raises(
            ConnectionRefusedError, match="not used while a cluster of mockube is the default"
        ):
            socket.getaddrinfo(*address[:2])
        with socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET) as sock:
            with pytest.raises(ConnectionRefusedError, match="not used while"):
                sock.connect(address)
            with pytest.raises(ConnectionRefusedError, match="not used while"):
                sock.connect_ex(address)


@pytest.mark.parametrize(
    "text", ["", "a", "[]", "{clusters: [5]}", "{clusters: [{cluster: {server: 5}}]}", "{a: ["]
)
def test_kubeconfig_without_server_is_ignored(cluster, decoy, text):
    Path(os.environ["KUBECONFIG"]).write_text(text)
    with cluster.as_default():
        assert send(default_clients.kubernetes_loaded) == cluster.url


def test_default_needs_running_cluster():
    with pytest.raises(NotStarted, match="the cluster was not started"):
        Cluster().as_default()
