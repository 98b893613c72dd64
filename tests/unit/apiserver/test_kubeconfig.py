"""A kubeconfig is readable by its owner only, and does not replace a file of other origin."""

import base64
import stat

import pytest
import yaml

from mockube.apiserver import kubeconfig
from mockube.apiserver.pki.issue import Pair

CLIENT = Pair(certificate=b"crt", key=b"key")


def write(path, server="https://127.0.0.1:6443"):
    kubeconfig.write(path, server=server, ca=b"ca", client=CLIENT, token="t")


def test_written_kubeconfig_is_complete(tmp_path):
    path = tmp_path / "new" / "config"
    write(path)
    tree = yaml.safe_load(path.read_text())
    assert tree["current-context"] == "mockube"
    assert tree["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:6443"
    user = tree["users"][0]["user"]
    assert base64.b64decode(user["client-certificate-data"]) == b"crt"
    assert user["token"] == "t"


def test_kubeconfig_is_private(tmp_path):
    path = tmp_path / "config"
    path.touch(mode=0o644)
    write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_older_own_kubeconfig_is_replaced(tmp_path):
    path = tmp_path / "config"
    write(path)
    write(path, "https://127.0.0.1:1")
    assert "https://127.0.0.1:1" in path.read_text()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("clusters: [{name: production}]", id="another cluster"),
        pytest.param("clusters: [{name: mockube}, {name: production}]", id="other entries are kept"),
        pytest.param("current-context: x", id="no clusters"),
        pytest.param("a: b: c", id="no YAML"),
        pytest.param("notes", id="something else"),
    ],
)
def test_foreign_kubeconfig_is_not_replaced(tmp_path, text):
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(
        kubeconfig.OtherKubeconfig,
        match="was not created by mockube and is not overwritten: pass another path to --write-kubeconfig",
    ):
        write(path)
    assert path.read_text() == text
