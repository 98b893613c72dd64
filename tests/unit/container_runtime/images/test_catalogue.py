"""The built-in table of images is complete, and each entry of it is consistent."""

from collections import Counter

import pytest

from mockube.container_runtime.images.registries import repository_of
from mockube.container_runtime.images.resolution import official_images, resolve
from mockube.container_runtime.images.table import behavior_of_image, built_in_images

_WANTED = (
    "nginx", "busybox", "redis", "alpine", "mysql", "mariadb", "postgres", "mongo", "httpd", "python", "node", "debian", "ubuntu",
    "curlimages/curl", "gcr.io/google-samples/hello-app:1.0", "registry.k8s.io/e2e-test-images/agnhost:2.53", "bitnami/nginx", "bitnami/redis",
    "bitnami/postgresql", "bitnami/mysql", "bitnami/mongodb", "groundnuty/k8s-wait-for:v2.0", "rabbitmq", "cassandra", "zookeeper", "wordpress",
    "memcached", "elasticsearch:8.15.0", "hashicorp/vault", "nats", "minio/mc", "fluentd", "prom/prometheus", "grafana/grafana",
    "registry.k8s.io/hpa-example", "registry.k8s.io/echoserver:1.10", "us-docker.pkg.dev/google-samples/containers/gke/gb-frontend:v5",
    "gcr.io/google-samples/kubernetes-bootcamp:v1", "hashicorp/http-echo:1.0", "stefanprodan/podinfo", "polinux/stress", "perl:5.34.0",
    "registry.k8s.io/pause:3.10", "k8s.gcr.io/pause:2.0",
)  # fmt: skip


@pytest.mark.parametrize("reference", _WANTED)
def test_much_used_image_is_known_and_exists(reference):
    resolution = resolve(reference)
    assert (resolution.problem, resolution.invalid) == ("", "")
    assert resolution.image is not None


def test_at_least_a_hundred_images_are_known():
    assert len(built_in_images()) >= 100


def test_no_two_entries_for_any_tag_have_a_name_in_common():
    names = Counter(
        repository_of(name) for entry in built_in_images() if not entry.tags for name in entry.names
    )
    assert [name for name, number in names.items() if number > 1] == []


def test_each_name_leads_to_its_entry():
    for entry in built_in_images():
        for name in entry.names:
            found = behavior_of_image(
                f"{repository_of(name)}:{entry.tags[0]}" if entry.tags else repository_of(name)
            )
            assert found is not None, name
            assert name in found.names, name


def test_entries_for_certain_tags_of_official_images_are_for_tags_that_exist():
    for entry in built_in_images():
        for name in entry.names:
            releases = official_images().get(repository_of(name).removeprefix("docker.io/library/"))
            assert releases is None or all(tag in releases.words for tag in entry.tags), name


@pytest.mark.parametrize(
    ("reference", "exists"),
    [
        ("gcr.io/google-samples/hello-app:2.0", True),
        ("gcr.io/google-samples/hello-app:3.0", False),
        ("gcr.io/google_samples/hello-app:9", False),
        ("registry.k8s.io/pause:3.9", True),
        ("k8s.gcr.io/pause:99", False),
        ("registry.k8s.io/e2e-test-images/agnhost:2.99.9.9", False),
    ],
)
def test_tags_of_other_registries_are_those_of_the_entry(reference, exists):
    assert (resolve(reference).problem == "") == exists
