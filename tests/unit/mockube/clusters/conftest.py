"""Fixtures: an empty data directory, and the folder of a cluster in it."""

import pytest

from mockube.clusters.named_cluster import cluster_folder


@pytest.fixture
def environment(tmp_path):
    return {"XDG_DATA_HOME": str(tmp_path)}


@pytest.fixture
def folder(environment):
    folder = cluster_folder("one", environment)
    folder.prepare()
    return folder
