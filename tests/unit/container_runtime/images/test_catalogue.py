"""The built-in table of images is complete, and each entry of it is consistent."""

from collections import Counter

import pytest

from mockube.container_runtime.images.registries import repository_of
from mockube.container_runtime.images.resolution import official_images, resolve
from mockube.container_runtime.images.table import built_in_images
from tests.support.images import IMAGES

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
    resolution = resolve(IMAGES, reference)
    assert (resolution.problem, resolution.invalid) == ("", "")
    assert resolution.image is not None


_OF_CONFORMANCE_SUITE = """
    build-image/distroless-iptables:v0.9.9 cloud-provider-gcp/gcp-compute-persistent-disk-csi-driver:v1.4.0 e2e-test-images/agnhost:2.55
    e2e-test-images/agnhost:2.66.1 e2e-test-images/apparmor-loader:1.4 e2e-test-images/busybox:1.36.1-1 e2e-test-images/busybox:1.37.0-2
    e2e-test-images/glibc-dns-testing:2.1.1 e2e-test-images/ipc-utils:1.4 e2e-test-images/kitten:1.8 e2e-test-images/nautilus:1.8
    e2e-test-images/nginx:1.27.0-2 e2e-test-images/nginx:1.28.0-2 e2e-test-images/node-perf/npb-ep:1.6.0 e2e-test-images/node-perf/npb-is:1.7.0
    e2e-test-images/node-perf/pytorch-wide-deep:1.0.0 e2e-test-images/nonewprivs:1.4 e2e-test-images/nonroot:1.5 e2e-test-images/perl:5.26
    e2e-test-images/regression-issue-74839:1.5 e2e-test-images/resource-consumer:1.14 e2e-test-images/sample-apiserver:1.29.2
    e2e-test-images/sample-device-plugin:1.7 e2e-test-images/volume/iscsi:2.7 e2e-test-images/volume/nfs:1.6.0 etcd:3.7.0-0 pause:3.10.2
    sig-storage/csi-attacher:v4.12.0 sig-storage/csi-external-health-monitor-controller:v0.18.0 sig-storage/csi-node-driver-registrar:v2.17.0
    sig-storage/csi-provisioner:v6.3.0 sig-storage/csi-resizer:v2.2.0 sig-storage/csi-snapshot-metadata:v1.0.0 sig-storage/csi-snapshotter:v8.6.0
    sig-storage/hello-populator:v1.0.1 sig-storage/hostpathplugin:v1.17.1 sig-storage/livenessprobe:v2.19.0 sig-storage/nfs-provisioner:v4.0.8
    sig-storage/volume-data-source-validator:v1.0.0
"""
"""Images of registry.k8s.io that the end-to-end suite of 1.37 names: `e2e.test --list-images`."""


@pytest.mark.parametrize("name", _OF_CONFORMANCE_SUITE.split())
def test_image_of_conformance_suite_exists(name):
    resolution = resolve(IMAGES, f"registry.k8s.io/{name}")
    assert (resolution.problem, resolution.invalid) == ("", "")


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
            found = IMAGES.behavior_of_image(
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
    assert (resolve(IMAGES, reference).problem == "") == exists
