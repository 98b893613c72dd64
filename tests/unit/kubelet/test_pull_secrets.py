"""The registries for which the Secrets of pods have credentials."""

from base64 import b64encode

import orjson
import pytest

from mockube.apimachinery.status import NotFound
from mockube.client.resources import Key
from mockube.kubelet.pull_secrets import PullSecrets, matches_registry, registries_of


def secret(registries, *, kind="dockerconfigjson", version="1"):
    tree = {"auths": registries} if kind == "dockerconfigjson" else registries
    data = {f".{kind}": b64encode(orjson.dumps(tree)).decode()}
    metadata = {"namespace": "ns", "name": "s", "resourceVersion": version}
    return {"metadata": metadata, "type": f"kubernetes.io/{kind}", "data": data}


@pytest.mark.parametrize("kind", ["dockerconfigjson", "dockercfg"])
def test_registries_are_the_keys_of_both_types(kind):
    names = {"https://ghcr.io": {}, "quay.io/team/": {}, "https://index.docker.io/v1/": {}}
    assert registries_of(secret(names, kind=kind)) == ("ghcr.io", "quay.io/team", "index.docker.io")


@pytest.mark.parametrize(
    "tree",
    [
        {"type": "Opaque", "data": {".dockerconfigjson": "e30="}},
        {"type": "kubernetes.io/dockerconfigjson"},
        {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "%"}},
        {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": "W10="}},
        {"type": "kubernetes.io/dockercfg", "data": {".dockercfg": "eyI="}},
    ],
)
def test_secret_that_cannot_be_read_has_no_registries(tree):
    assert registries_of(tree) == ()


@pytest.mark.parametrize(
    ("registry", "image", "expected"),
    [
        ("ghcr.io", "ghcr.io/team/app:1", True),
        ("ghcr.io", "quay.io/team/app:1", False),
        ("ghcr.io/team", "ghcr.io/team/app", True),
        ("ghcr.io/other", "ghcr.io/team/app", False),
        ("*.azurecr.io", "mine.azurecr.io/app", True),
        ("*.azurecr.io", "a.b.azurecr.io/app", False),
        ("host:5000", "host:5000/app", True),
        ("host", "host:5000/app", False),
        ("index.docker.io", "team/app", True),
        ("docker.io", "nginx", True),
    ],
)
def test_credentials_are_for_images_of_their_registry(registry, image, expected):
    assert matches_registry([registry], image) is expected


class Server:
    def __init__(self, tree):
        self.tree = tree
        self.requests = 0

    async def get(self, _resource, _key):
        self.requests += 1
        if self.tree is None:
            raise NotFound("gone")
        return self.tree


async def test_each_version_is_requested_once():
    full = secret({"ghcr.io": {}})
    server = Server(full)
    secrets, key = PullSecrets(server), Key.of(full)
    assert secrets.find(full) is None
    await secrets.load({key: full})
    assert secrets.find(full) == ("ghcr.io",)
    assert secrets.find(secret({}, version="2")) is None


async def test_secret_that_is_gone_has_no_registries():
    cached = secret({"ghcr.io": {}})
    secrets = PullSecrets(Server(None))
    await secrets.load({Key.of(cached): cached})
    assert secrets.find(cached) == ()
