"""A reference resolves to an image that can exist, or to why a node cannot pull it, in containerd's words."""

import pytest

from mockube.container_runtime.images.resolution import resolve
from tests.support.images import IMAGES

_DENIED = (
    "pull access denied, repository does not exist or may require authorization: "
    "server message: insufficient_scope: authorization failed"
)


@pytest.mark.parametrize(
    "reference",
    [
        "nginx", "nginx:1.29", "nginx:1.7.9", "nginx:1.31.4-alpine3.24-slim", "nginx:stable-alpine", "nginx:mainline-perl", "nginx:2",
        "nginx:1.33", "redis:5.0.4", "postgres:16-alpine", "mysql:8.0.36", "node:lts-krypton", "node:27", "python:3.13-slim-bookworm",
        "debian:bookworm-20260803-slim", "ubuntu:24.04", "busybox:1.28", "perl:5.34.0", "docker:24-dind", "traefik:v3.3", "traefik:3",
        "openjdk:8-jdk-alpine", "maven:3.9-eclipse-temurin-17", "vault:1.13.3", "hello-world", "public.ecr.aws/docker/library/nginx:1.27",
        f"nginx@sha256:{'0' * 64}",
    ],
)  # fmt: skip
def test_released_tag_of_official_image_exists(reference):
    resolution = resolve(IMAGES, reference)
    assert (resolution.problem, resolution.invalid) == ("", "")


@pytest.mark.parametrize(
    "reference",
    [
        "nginx:doesnotexist", "nginx:latestt", "nginx:1.999", "nginx:99", "nginx:1.29.4.1", "nginx:v1.29", "nginx:1.029", "nginx:1.29-nope",
        "redis:99", "postgres:17-ubi", "python:3.99", "mysql:9.99", "alpine:3.99", "elasticsearch:latest", "ubuntu:24.4", "node:fermiumm",
        "mirror.gcr.io/library/nginx:nope", "vault:latest", "consul:latest", "jenkins",
    ],
)  # fmt: skip
def test_tag_that_official_image_cannot_have_is_not_found(reference):
    resolution = resolve(IMAGES, reference)
    name = resolution.name
    assert resolution.error == (
        f'rpc error: code = NotFound desc = failed to pull and unpack image "{name}": failed to resolve reference "{name}": {name}: not found'
    )


@pytest.mark.parametrize(
    "name",
    ["ngnix", "nginxx", "nginx2", "ngin", "redis123", "busybx", "busyboxx", "posgres", "postgress", "mysqll", "mongodb", "nodejs", "ubunut"],
)  # fmt: skip
def test_mistaken_name_of_official_image_is_denied(name):
    full = f"docker.io/library/{name}:1"
    assert resolve(IMAGES, f"{name}:1").error == (
        f'rpc error: code = Unknown desc = failed to pull and unpack image "{full}": failed to resolve reference "{full}": {_DENIED}'
    )


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("does-not-exist", _DENIED),
        ("nonexistent/app:1", _DENIED),
        ("team/invalid-image:latest", _DENIED),
        ("yourcompany/crw:latest", _DENIED),
        ("your-dockerhub-username/app:1", _DENIED),
        ("quay.io/team/no-such-image:1", "quay.io/team/no-such-image:1: not found"),
        ("team/app:nonexistent", "docker.io/team/app:nonexistent: not found"),
        ("team/app:invalid_tag", "docker.io/team/app:invalid_tag: not found"),
        (
            "nonexistent-registry.io/app:1",
            "dial tcp: lookup nonexistent-registry.io on 172.18.0.1:53: no such host",
        ),
        (
            "my-private-registry.io/app:1",
            "https://my-private-registry.io/v2/app/manifests/1: 401 Unauthorized",
        ),
    ],
)
def test_name_that_says_it_does_not_exist_does_not(reference, reason):
    assert resolve(IMAGES, reference).problem.endswith(reason)


def test_registry_that_says_it_is_private_has_images_for_pull_secrets():
    assert resolve(IMAGES, "my-private-registry.io/app:1", has_pull_secret=True).error == ""


@pytest.mark.parametrize(
    "reference",
    [
        "app", "web", "operator", "myapp:1.0", "trainer", "store:1", "mango", "solar", "http", "telegram", "registrar", "my-nginx", "nginx-app",
        "rocker", "note", "mode", "a", "hook", "helloworld", "example.org/app:x", "example.com/nginx:nope", "localhost:5000/ngnix", "team/ngnix",
        "nginx.example.org/app", "invalid/app", "test/app", "missing", "private/app", "image-validator", "existential", "registry.corp:5000/app:x",
        "company/app", "yours/app", "yourcompany", "ghcr.io/yourcompany/app",
    ],
)  # fmt: skip
def test_image_of_ones_own_may_exist(reference):
    resolution = resolve(IMAGES, reference)
    assert (resolution.problem, resolution.invalid) == ("", "")


@pytest.mark.parametrize("host", ["x.invalid", "registry.test:5000", "registry.example"])
def test_registry_in_reserved_domain_has_no_address(host):
    assert resolve(IMAGES, f"{host}/app:1").problem == (
        f'failed to pull and unpack image "{host}/app:1": failed to resolve reference "{host}/app:1": failed to do request: '
        f'Head "https://{host}/v2/app/manifests/1": dial tcp: lookup {host.partition(":")[0]} on 172.18.0.1:53: no such host'
    )


def test_invalid_reference_has_the_kubelets_words():
    resolution = resolve(IMAGES, "Nginx")
    assert (resolution.name, resolution.problem) == ("", "")
    assert resolution.invalid == (
        'couldn\'t parse image name "Nginx": invalid reference format: repository name (library/Nginx) must be lowercase'
    )


def test_mirror_has_the_digest_of_its_origin():
    digests = {
        resolve(IMAGES, name).digest
        for name in (
            "nginx:1.29",
            "public.ecr.aws/docker/library/nginx:1.29",
            "mirror.gcr.io/library/nginx:1.29",
        )
    }
    assert len(digests) == 1
    assert resolve(IMAGES, "nginx:1.28").digest not in digests


def test_digest_and_size_are_always_the_same():
    first, second = resolve(IMAGES, "team/app:1"), resolve(IMAGES, "docker.io/team/app:1")
    assert (first.digest, first.size) == (second.digest, second.size)
    assert first.size >= 5 << 20
    assert first.digest.startswith("sha256:")


def test_variants_of_newest_image_have_digests_of_their_own():
    digests = {
        tag: resolve(IMAGES, f"nginx:{tag}").digest
        for tag in ("latest", "stable", "alpine", "alpine-slim", "mainline-alpine", "perl")
    }
    assert digests["latest"] == digests["stable"]
    assert digests["alpine"] == digests["mainline-alpine"]
    assert len(set(digests.values())) == 4
