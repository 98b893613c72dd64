"""`mockube.connect`: the same methods for a cluster that runs already."""

import pytest

from mockube import connect
from mockube.failure import Failure

POD = "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: nginx}]}}"


def test_connection_has_methods_of_cluster(cluster):
    with connect(kubeconfig=cluster.kubeconfig) as connection:
        assert connection.url == cluster.url
        connection.apply(POD)
        assert connection.wait("Pod", "a", "Ready")["status"]["phase"] == "Running"
        assert connection.exec("a", "hostname").stdout == "a\n"
        connection.delete("pod/a")
    with pytest.raises(Failure, match=r"^the connection was closed$"):
        connection.list("Pod")


async def test_connection_is_awaited(cluster):
    async with connect(kubeconfig=cluster.kubeconfig) as connection:
        assert len(await connection.list("nodes")) == 2


def test_kubeconfig_of_environment_is_used(cluster, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    with connect() as connection:
        assert connection.url == cluster.url


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param({"name": "blue"}, 'there is no cluster "blue"', id="unknown name"),
        pytest.param({"name": "~/.kube/config"}, r"connect\(kubeconfig=", id="path as name"),
        pytest.param({}, "`mockube up` starts", id="no cluster"),
        pytest.param({"kubeconfig": "/none"}, "/none: .*No such file", id="missing file"),
        pytest.param({"name": "a", "kubeconfig": "b"}, "not both", id="name and file"),
        pytest.param(
            {"kubeconfig": ""}, "the path of the kubeconfig is empty: is KUBECONFIG set", id="empty file"
        ),
        pytest.param({"kubeconfig": "/a:/b"}, "pass the path of one", id="several files"),
    ],
)
def test_cluster_that_is_not_found_is_reported(monkeypatch, tmp_path, arguments, message):
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with pytest.raises(Failure, match=message):
        connect(**arguments)


def test_context_is_chosen(cluster):
    with pytest.raises(Failure, match='context "blue" does not exist'):
        connect(kubeconfig=cluster.kubeconfig, context="blue")


def test_server_that_does_not_respond_is_named(tmp_path):
    file = tmp_path / "kubeconfig"
    file.write_text(
        "{clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}],"
        " contexts: [{name: a, context: {cluster: a}}], current-context: a}"
    )
    with pytest.raises(Failure, match=r"the server http://127\.0\.0\.1:1 does not respond"):
        connect(kubeconfig=file)
