"""Paths of cluster folders, and valid cluster names."""

from pathlib import Path

import pytest

from mockube.clusters.named_cluster import cluster_folder, cluster_folders
from mockube.failure import UsageError


def test_cluster_folder_follows_xdg_specification(tmp_path):
    folder = cluster_folder("blue-2", {"XDG_DATA_HOME": str(tmp_path)})
    assert folder.kubeconfig == tmp_path / "mockube" / "clusters" / "blue-2" / "kubeconfig"
    assert folder.context == "mockube-blue-2"
    assert cluster_folder("default", {}).context == "mockube"


@pytest.mark.parametrize("environment", [{}, {"XDG_DATA_HOME": ""}, {"XDG_DATA_HOME": "not/absolute"}])
def test_cluster_folder_defaults_to_home_directory(environment):
    assert cluster_folder("x", environment).path == Path.home() / ".local/share/mockube/clusters/x"


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a.b", "a/b", "..", "a" * 41, "ä"])
def test_invalid_names_are_refused(name):
    with pytest.raises(UsageError, match="is not a valid cluster name"):
        cluster_folder(name, {})


def test_cluster_folders_are_private(tmp_path):
    folder = cluster_folder("x", {"XDG_DATA_HOME": str(tmp_path)})
    folder.prepare()
    folder.prepare()
    assert [folder.stat().st_mode & 0o777 for folder in (folder.path, folder.pki, folder.logs)] == [0o700] * 3


def test_clusters_are_listed_sorted(tmp_path):
    environment = {"XDG_DATA_HOME": str(tmp_path)}
    assert cluster_folders(environment) == []
    for name in ("b", "a"):
        cluster_folder(name, environment).prepare()
    (tmp_path / "mockube" / "clusters" / ".DS_Store").touch()
    assert [folder.name for folder in cluster_folders(environment)] == ["a", "b"]
