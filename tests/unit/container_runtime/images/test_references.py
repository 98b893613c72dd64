"""References to images are parsed as distribution/reference does, with its messages."""

import pytest

from mockube.apimachinery.images import InvalidImage
from mockube.container_runtime.images.references import parse_reference

_DIGEST = f"sha256:{'a' * 64}"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("nginx", "docker.io/library/nginx:latest"),
        ("nginx:1.29", "docker.io/library/nginx:1.29"),
        ("docker.io/nginx", "docker.io/library/nginx:latest"),
        ("index.docker.io/nginx", "docker.io/library/nginx:latest"),
        ("library/nginx", "docker.io/library/nginx:latest"),
        ("bitnami/redis", "docker.io/bitnami/redis:latest"),
        ("localhost/app", "localhost/app:latest"),
        ("localhost:5000/app:1", "localhost:5000/app:1"),
        ("[::1]:5000/app", "[::1]:5000/app:latest"),
        ("Registry/app", "Registry/app:latest"),
        (f"nginx@{_DIGEST}", f"docker.io/library/nginx@{_DIGEST}"),
        (f"nginx:1.29@{_DIGEST}", f"docker.io/library/nginx@{_DIGEST}"),
        ("a__b/c--d/e.f:_x", "docker.io/a__b/c--d/e.f:_x"),
    ],
)
def test_reference_has_canonical_name(text, name):
    assert parse_reference(text).name == name


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "invalid reference format"),
        ("Nginx", "invalid reference format: repository name (library/Nginx) must be lowercase"),
        ("docker.io/Team/app", "invalid reference format: repository name (Team/app) must be lowercase"),
        ("nginx:", "invalid reference format"),
        ("nginx:a b", "invalid reference format"),
        ("nginx::1", "invalid reference format"),
        ("-nginx", "invalid reference format"),
        ("https://docker.io/nginx", "invalid reference format"),
        ("nginx@sha256:abc", "invalid reference format"),
        ("nginx:" + "t" * 129, "invalid reference format"),
        ("a" * 64, f"invalid repository name ({'a' * 64}), cannot specify 64-byte hexadecimal strings"),
        ("x/" + "a" * 256, "repository name must not be more than 255 characters"),
        (f"nginx@sha256:{'a' * 32}", "invalid checksum digest length"),
        (f"nginx@sha256:{'A' * 64}", "invalid checksum digest format"),
        (f"nginx@md5:{'a' * 32}", "unsupported digest algorithm"),
        ("a/" * 100_000, "invalid reference format"),
    ],
)
def test_invalid_reference_is_refused_in_upstreams_words(text, problem):
    with pytest.raises(InvalidImage) as raised:
        parse_reference(text)
    assert str(raised.value) == problem
