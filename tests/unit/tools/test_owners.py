"""The map from upstream's files to ours, beside the list of upstream's files of the current release."""

import pytest

from tests.support.processes.process import ROOT
from tools.minors.owners import FILE, UPSTREAM_FILES, Owner, matches, owner_of, problems, read_owners

WITHOUT_OWNER = (
    "pkg/api",
    "pkg/apis",
    "pkg/controller",
    "pkg/controller/volume",
    "pkg/kubelet",
    "pkg/registry",
    "pkg/registry/core",
    "pkg/scheduler",
    "pkg/scheduler/framework/plugins",
    "plugin/pkg/admission",
    "staging/src/k8s.io/apiserver/pkg/admission/plugin",
)
"""Folders of which each entry has an owner of its own, so that a new one has none."""


@pytest.fixture(scope="module")
def owners():
    return read_owners(FILE.read_text())


@pytest.mark.thorough
def test_each_file_of_upstream_has_owner_that_exists(owners):
    assert list(problems(owners, UPSTREAM_FILES.read_text().splitlines(), ROOT)) == []


@pytest.mark.parametrize("folder", WITHOUT_OWNER)
def test_new_entry_of_folder_has_no_owner(folder, owners):
    assert owner_of(owners, f"{folder}/new/new.go", "New") is None


def test_problems_name_missing_owners_paths_and_files(tmp_path):
    (tmp_path / "here.py").touch()
    owners = read_owners("pkg: {a.go: here.py, b.go: gone.py, c.go: {absent: }, old.go: here.py}")
    assert list(problems(owners, ["pkg/a.go", "pkg/b.go", "pkg/c.go", "pkg/d.go"], tmp_path)) == [
        "pkg/d.go has no owner",
        "pkg/b.go: gone.py does not exist",
        "pkg/c.go needs either paths or the reason of their absence",
        "pkg/old.go is no compared file of upstream",
    ]


def test_longest_key_decides():
    owners = read_owners(
        """
        pkg: folder.py
        pkg/a.go:
          "#Print": prints.py
          "#PrintPod": {absent: pods are not printed}
        k8s.io/api: api.py
        """
    )
    assert owner_of(owners, "pkg/a.go", "Other") == Owner(("folder.py",))
    assert owner_of(owners, "pkg/a.go", "PrintNode") == Owner(("prints.py",))
    assert owner_of(owners, "pkg/a.go", "PrintPodList") == Owner(absent="pods are not printed")
    assert owner_of(owners, "staging/src/k8s.io/api/a.go") == Owner(("api.py",))


def test_key_does_not_match_longer_name_of_folder():
    assert not matches("pkg/pod", "pkg/pods/a.go")
