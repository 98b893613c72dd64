"""The packages know packs by their entry points only: none contains the name of one, and all work without any."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from mockube.apiserver.kinds.built_in_kinds import NEWEST
from mockube.apiserver.packs.definitions import definition_trees
from mockube.component_base.packs import own_pack_names
from tests.architecture.source import paths
from tools.packages import PACKAGES, ROOT

CORE = tuple(package for package in PACKAGES if package != "packs")
START_CLUSTER = """
from mockube import Cluster
from mockube.component_base.packs import own_pack_names
assert own_pack_names() == (), own_pack_names()
with Cluster(nodes=1) as cluster:
    cluster.apply("{apiVersion: v1, kind: Namespace, metadata: {name: shop}}")
    cluster.wait("Namespace", "shop", lambda tree: tree["status"]["phase"] == "Active")
"""


def words_of(pack):
    """Return the words by which a package would name the pack: its own name, and the kinds and groups of its definitions."""
    built_in = {kind.resource.kind for kind in NEWEST.all}
    specs = [tree["spec"] for tree in definition_trees(pack)]
    kinds = {spec["names"]["kind"] for spec in specs} - built_in
    return {pack, *kinds, *(spec["group"] for spec in specs)}


@pytest.mark.parametrize("pack", own_pack_names())
def test_no_package_names_a_pack(pack):
    words = {word.lower() for word in words_of(pack)}
    found = [
        f"{path}: {word}"
        for path in paths(*CORE)
        for text in [re.sub(r"[_ -]", "", (ROOT / path).read_text().lower())]
        for word in words
        if word in text
    ]
    assert found == []


def test_cluster_starts_without_any_pack(tmp_path):
    for package in CORE:
        if package != "mockube":
            (tmp_path / package).symlink_to(ROOT / package)
    shutil.copytree(ROOT / "mockube", tmp_path / "mockube", symlinks=True)
    answer = subprocess.run(
        [sys.executable, "-c", START_CLUSTER],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert answer.returncode == 0, answer.stderr
