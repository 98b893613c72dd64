"""A kubelet has the version of its server, or that of an annotation as far as the skew policy allows."""

import pytest

from mockube.kubelet.kubelet_versions import is_unsupported, kubelet_version


@pytest.mark.parametrize(
    ("annotation", "server", "version", "unsupported"),
    [
        pytest.param(None, "v1.37.2", "v1.37.2", False, id="no annotation"),
        pytest.param("1.36", "v1.37.2", "v1.36.3", False, id="one minor older"),
        pytest.param("v1.36.3", "v1.37.2", "v1.36.3", False, id="release"),
        pytest.param("1.34", "v1.37.2", "v1.34.4", False, id="three minors older"),
        pytest.param("1.33", "v1.37.2", "v1.34.4", True, id="four minors older"),
        pytest.param("1.37", "v1.36.3", "v1.36.3", True, id="newer than the server"),
        pytest.param("1.37", "v1.37.1-custom", "v1.37.1-custom", False, id="minor of a real server"),
        pytest.param("newest", "v1.37.2", "v1.37.2", True, id="no release"),
        pytest.param("1.36", "", "", True, id="unknown server"),
    ],
)
def test_version_is_within_the_skew_policy(annotation, server, version, unsupported):
    annotations = {} if annotation is None else {"mockube.dev/kubelet-version": annotation}
    assert kubelet_version(annotations, server) == version
    assert is_unsupported(annotations, server) == unsupported
