import pytest

from mockube.apiserver.kinds.core.pod.defaults import pull_policy

HEX = "0123456789abcdef"
SHA256, SHA512 = f"sha256:{HEX * 4}", f"sha512:{HEX * 8}"


@pytest.mark.parametrize(
    "image",
    [
        "nginx", "nginx:latest", "library/nginx", "docker.io/nginx:latest", "localhost/x", "localhost:5000/x",
        "registry.example.com/team/app", "REGISTRY.example.com:443/a/b", "Team/app",
        "[::1]:5000/app", "a__b/c--d.e_f", "foo_bar.baz/x", "app:latest@" + SHA256, "a" * 247, "a/" + "b" * 253,
        "h.example/" + "b" * 255,
    ],
)  # fmt: skip
def test_image_pull_policy_of_latest_is_always(image):
    assert pull_policy(image) == "Always"


@pytest.mark.parametrize(
    "image",
    [
        pytest.param("nginx:1.25", id="a tag"),
        pytest.param("localhost:5000", id="a tag that looks like a port"),
        pytest.param("localhost:5000/app:1", id="a tag and a port"),
        pytest.param(f"nginx@{SHA256}", id="a digest"),
        pytest.param(f"nginx:1@{SHA512}", id="both"),
    ],
)
def test_image_pull_policy_of_tag_or_digest_is_if_not_present(image):
    assert pull_policy(image) == "IfNotPresent"


@pytest.mark.parametrize(
    "image",
    [
        pytest.param("", id="empty"),
        pytest.param("Nginx:latest", id="a path with capitals"),
        pytest.param("-nginx:latest", id="a separator in front"),
        pytest.param("a//b:latest", id="an empty part"),
        pytest.param("a___b:latest", id="three underscores"),
        pytest.param("nginx:la test", id="a space"),
        pytest.param("nginx:latest\n", id="a line's end"),
        pytest.param("https://nginx:latest", id="a scheme"),
        pytest.param("host:port/nginx:latest", id="no number for a port"),
        pytest.param("nginx:latest@sha256:abc", id="a digest that is too short"),
        pytest.param(f"nginx:latest@{SHA256.upper()}", id="a digest in capitals"),
        pytest.param(f"nginx:latest@md5:{HEX * 2}", id="an unknown digest"),
        pytest.param(HEX * 4, id="an image's ID"),
        pytest.param("a" * 248, id="too long for the hub, which puts library/ in front"),
        pytest.param("a/" + "b" * 254, id="too long"),
        pytest.param("h.example/" + "b" * 256, id="too long behind a host"),
    ],
)
def test_image_pull_policy_of_invalid_name_is_if_not_present(image):
    assert pull_policy(image) == "IfNotPresent"
