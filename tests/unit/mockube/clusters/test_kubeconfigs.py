"""Kubeconfigs of named clusters: published, copied, and merged into others."""

import pytest
import yaml

from mockube.clusters import kubeconfigs
from mockube.clusters.named_cluster import cluster_folder
from mockube.failure import Failure

SERVERS = """
apiVersion: v1
kind: Config
clusters: [{name: mockube, cluster: {server: 'https://127.0.0.1:1234'}}]
users: [{name: kubernetes-admin, user: {token: abc}}]
contexts: [{name: mockube, context: {cluster: mockube, user: kubernetes-admin}}]
current-context: mockube
"""

OTHERS = """
apiVersion: v1
kind: Config
preferences: {colors: true}
clusters: [{name: work, cluster: {server: 'https://work'}}]
users: [{name: me, user: {token: secret}}]
contexts: [{name: work, context: {cluster: work, user: me}}]
current-context: work
"""


ONLY_MINE = {part: ["mockube-one"] for part in kubeconfigs.ENTRY_LISTS}


@pytest.fixture
def folder(folder):
    folder.admin_kubeconfig.write_text(SERVERS)
    assert kubeconfigs.publish(folder) == "https://127.0.0.1:1234"
    return folder


def names(tree):
    return {part: [entry["name"] for entry in tree[part]] for part in kubeconfigs.ENTRY_LISTS}


def test_kubeconfig_entries_have_cluster_name(folder):
    tree = yaml.safe_load(folder.kubeconfig.read_text())
    assert names(tree) == ONLY_MINE
    assert tree["contexts"][0]["context"] == {"cluster": "mockube-one", "user": "mockube-one"}
    assert tree["current-context"] == "mockube-one"
    assert tree["users"][0]["user"] == {"token": "abc"}
    assert folder.kubeconfig.stat().st_mode & 0o777 == 0o600


def test_merge_adds_context_and_keeps_others(folder, tmp_path):
    path = tmp_path / "config"
    path.write_text(OTHERS)
    for _ in range(2):
        kubeconfigs.merge(folder, path)
    tree, before = yaml.safe_load(path.read_text()), yaml.safe_load(OTHERS)
    assert names(tree) == {
        "clusters": ["work", "mockube-one"],
        "users": ["me", "mockube-one"],
        "contexts": ["work", "mockube-one"],
    }
    assert tree["current-context"] == "mockube-one"
    assert tree["preferences"] == before["preferences"]
    assert [tree[part][0] for part in kubeconfigs.ENTRY_LISTS] == [
        before[part][0] for part in kubeconfigs.ENTRY_LISTS
    ]


@pytest.mark.parametrize("existing", [None, "", "kind: Config\nclusters: null\n"])
def test_merge_creates_missing_kubeconfig(folder, tmp_path, existing):
    path = tmp_path / ".kube" / "config"
    if existing is not None:
        path.parent.mkdir()
        path.write_text(existing)
    kubeconfigs.merge(folder, path)
    assert names(yaml.safe_load(path.read_text())) == ONLY_MINE


def test_merge_follows_link(folder, tmp_path):
    path, link = tmp_path / "config", tmp_path / "link"
    path.write_text(OTHERS)
    link.symlink_to(path)
    kubeconfigs.merge(folder, link)
    assert link.is_symlink()
    assert "mockube-one" in path.read_text()


@pytest.mark.parametrize("text", ["[1, 2]", "{", "just words", "clusters: [1]", "users: [{}]"])
def test_merge_refuses_other_file(folder, tmp_path, text):
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(Failure, match="is not a kubeconfig"):
        kubeconfigs.merge(folder, path)
    assert path.read_text() == text


def test_copy_refuses_to_replace_other_kubeconfig(folder, tmp_path):
    path = tmp_path / "copy"
    for _ in range(2):
        kubeconfigs.check_no_other_clusters(folder, path)
        kubeconfigs.copy(folder, path)
    assert path.read_text() == folder.kubeconfig.read_text()
    path.write_text(OTHERS)
    with pytest.raises(Failure, match="contains other clusters"):
        kubeconfigs.check_no_other_clusters(folder, path)


@pytest.mark.parametrize("text", ["", "clusters: []", "clusters: [{name: x}]"])
def test_url_of_kubeconfig_without_server_is_empty(folder, text):
    folder.kubeconfig.write_text(text)
    assert kubeconfigs.read_url(folder) == ""


def test_url_of_missing_kubeconfig_is_empty(tmp_path):
    assert kubeconfigs.read_url(cluster_folder("two", {"XDG_DATA_HOME": str(tmp_path)})) == ""
