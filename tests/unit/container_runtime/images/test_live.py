"""A ConfigMap of the cluster, files and packs add to the table of images; what is invalid in the ConfigMap is left out."""

import pytest

from mockube.container_runtime.images.live import live_images
from mockube.container_runtime.images.resolution import is_loaded, resolve
from mockube.container_runtime.images.table import (
    ImageTable,
    ImageTableError,
    load_table,
    read_table,
)

_SHOP = "shop: {names: [registry.test/shop], ports: {8080: {}}}\n"
_PRIVATE = "vault: {names: [%s/team/vault], private: true}\n"


def said(**data):
    """Return a table with what a cluster's users say of images."""
    images = ImageTable()
    say(images, **data)
    return images


def say(images, **data):
    images.set_live(live_images({"data": {key.replace("_", "."): text for key, text in data.items()}}))


def test_image_that_users_describe_exists_until_they_do_not():
    images = ImageTable()
    assert resolve(images, "registry.test/shop:1").code == "Unknown"
    say(images, images_yaml=_SHOP)
    assert resolve(images, "registry.test/shop:1").error == ""
    assert set(images.behavior_of_image("registry.test/shop:1").ports) == {8080}
    say(images)
    assert images.behavior_of_image("registry.test/shop:1") is None
    assert resolve(images, "registry.test/shop:1").code == "Unknown"


def test_description_of_users_goes_before_the_built_in_one():
    images = said(images_yaml="nginx: {names: [nginx], user: 1234}")
    assert images.behavior_of_image("nginx:1.29").user == 1234


def test_loaded_image_exists():
    assert resolve(ImageTable(), "ngnix").code == "Unknown"
    images = said(loaded="ngnix\nnginx:mine\n\nx.invalid/app:1\n")
    for reference in ("ngnix", "docker.io/library/ngnix:latest", "nginx:mine", "x.invalid/app:1"):
        assert (resolve(images, reference).error, is_loaded(images, reference)) == ("", True)
    assert resolve(images, "ngnix:2").code == "Unknown"
    assert not is_loaded(images, "nginx")


def test_invalid_parts_of_the_config_map_are_logged_and_left_out(caplog):
    images = said(images_yaml="a: [", loaded="Nope\nngnix", others="")
    assert is_loaded(images, "ngnix")
    assert "ConfigMap kube-system/mockube-images: images.yaml is ignored: " in caplog.text
    assert (
        "loaded: Nope is ignored: invalid reference format: repository name (library/Nope) must be lowercase"
        in caplog.text
    )
    assert "others is not read" in caplog.text


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("docker.io", "pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed"),
        ("ghcr.io", "failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://ghcr.io/token?scope=repository%3Ateam%2Fvault%3Apull&service=ghcr.io: 401 Unauthorized"),
        ("registry.gitlab.com", "failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://gitlab.com/jwt/auth?scope=repository%3Ateam%2Fvault%3Apull&service=container_registry: 403 Forbidden"),
        ("shop.azurecr.io", "failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://shop.azurecr.io/oauth2/token?scope=repository%3Ateam%2Fvault%3Apull&service=shop.azurecr.io: 401 Unauthorized"),
        ("registry.corp:5000", "unexpected status from HEAD request to https://registry.corp:5000/v2/team/vault/manifests/1: 401 Unauthorized"),
    ],
)  # fmt: skip
def test_private_image_needs_a_pull_secret(host, reason):
    images = said(images_yaml=_PRIVATE % host)
    name = f"{host}/team/vault:1"
    assert resolve(images, name, has_pull_secret=True).error == ""
    assert (
        resolve(images, name).problem
        == f'failed to pull and unpack image "{name}": failed to resolve reference "{name}": {reason}'
    )


def test_file_may_also_describe_processes(tmp_path):
    path = tmp_path / "images.yaml"
    path.write_text(
        "images:\n  example.org/operator: {command: [python3, operator.py]}\n  shop: {names: [example.org/shop]}\n"
    )
    assert list(load_table(path, has_processes=True)) == ["example.org/shop"]
    with pytest.raises(ImageTableError):
        load_table(path)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: {names: [a], memory: {rest: 5 bananas}}", "5 bananas"),
        ("a: {names: [a], requires: [{}]}", "missing required field `oneOf`"),
        ("a: {names: [a], releases: {version: ['1']}}", "unknown field `version`"),
    ],
)
def test_invalid_field_is_refused_by_name(text, problem):
    with pytest.raises(ImageTableError, match=problem):
        read_table(text.encode())


def test_quantities_are_numbers():
    entry = read_table(b"a: {names: [a], memory: {rest: 64Mi}, cpu: {request: 100m}, size: 2Gi}")["a"][0]
    assert (entry.memory.rest, entry.cpu.request, entry.size) == (64 << 20, 0.1, 2 << 30)
