"""Newer releases of Kubernetes are noticed."""

import os
import shutil

import pytest

from tools.minors.patches import newer_published, newer_releases


def test_newer_patches_and_minors_are_returned():
    versions = ["v1.28.9", "v1.36.3", "v1.36.10", "v1.37.1", "v1.37.2-rc.0", "v1.38.0-alpha.1", "v1.39.0"]
    served = {"1.37": "1.37.1", "1.36": "1.36.4"}
    assert newer_releases(versions, served) == {"1.36": "1.36.10", "1.39": "1.39.0"}


def test_release_is_newer_than_its_alpha():
    assert newer_releases(["v1.38.0"], {"1.38": "1.38.0-alpha.1"}) == {"1.38": "1.38.0"}


@pytest.mark.skipif(
    not os.environ.get("MOCKUBE_FULL_SIZE"),
    reason="a release that is published later is no fault of a change",
)
@pytest.mark.skipif(shutil.which("go") is None, reason="the go command lists the releases")
def test_no_newer_release_is_published():
    assert newer_published() == {}
