"""The table of images gives what containers of known images do, and refuses invalid entries by name."""

import pytest

from mockube.container_runtime.images.table import (
    ImageTableError,
    load_table,
    protocols_of,
    read_table,
    runs_server,
)
from mockube.container_runtime.simulated.programs.program import command_of
from tests.support.images import IMAGES


@pytest.mark.parametrize(
    ("image", "user", "ports"),
    [
        ("nginx", 0, {80}),
        ("docker.io/library/nginx:1.29", 0, {80}),
        ("registry.example:5000/mirror/nginx@sha256:abc", 0, {80}),
        ("bitnami/nginx:latest", 1001, {8080}),
        ("docker.io/bitnamilegacy/postgresql:17", 1001, {5432}),
        ("registry.k8s.io/ingress-nginx/controller:v1", 101, {80, 443}),
    ],
)
def test_image_is_known_by_the_end_of_its_repository(image, user, ports):
    behavior = IMAGES.behavior_of_image(image)
    assert (behavior.user, set(behavior.ports)) == (user, ports)


@pytest.mark.parametrize("image", ["", "nginx-exporter", "example.org/own", "my-redis:7"])
def test_other_image_is_unknown(image):
    assert IMAGES.behavior_of_image(image) is None


@pytest.mark.parametrize(
    ("container", "argv"),
    [
        ({"image": "curlimages/curl", "args": ["-s", "web"]}, ("curl", "-s", "web")),
        ({"image": "curlimages/curl", "command": ["sh"], "args": ["-c", "x"]}, ("sh", "-c", "x")),
        ({"image": "bitnami/kubectl", "args": ["get", "pods"]}, ("kubectl", "get", "pods")),
        ({"image": "registry.k8s.io/e2e-test-images/agnhost:2.56"}, ("/agnhost", "pause")),
        ({"image": "nginx"}, ()),
        ({"image": "nginx", "args": ["sleep", "1"]}, ("sleep", "1")),
        ({"image": "example.org/own", "args": ["serve"]}, ("serve",)),
    ],
)
def test_entrypoint_of_known_image_runs_with_arguments_of_pod(container, argv):
    assert command_of(IMAGES, container) == argv


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: {names: [a], port: {}}", "unknown field `port`"),
        ("a: {names: [a], ports: {70000: {}}}", "a: ports: 70000 is no port"),
        ("a: {names: []}", "a: names: at least one is required"),
        ("a: {names: [a], ports: {x: {}}}", "Expected `int`"),
        ("[a]", "Expected `object`"),
        ("a: [", "yaml"),
    ],
)
def test_invalid_table_is_refused(text, problem):
    with pytest.raises(ImageTableError, match=problem):
        read_table(text.encode())


def test_file_of_table_is_named_in_errors(tmp_path):
    with pytest.raises(ImageTableError, match=r"none: No such file or directory"):
        load_table(tmp_path / "none")
    path = tmp_path / "images.yaml"
    path.write_text("a: {}")
    with pytest.raises(ImageTableError, match=r"images\.yaml: Object missing required field `names`"):
        load_table(path)


def test_file_of_table_has_limited_size(tmp_path):
    path = tmp_path / "images.yaml"
    path.write_bytes(b"#" * ((1 << 20) + 1))
    with pytest.raises(ImageTableError, match="more than 1048576 bytes"):
        load_table(path)


@pytest.mark.parametrize(
    ("image", "command"),
    [
        ("busybox", ("sh",)),
        ("registry.k8s.io/e2e-test-images/busybox:1.37.0-1", ("sh",)),
        ("mirror.example/library/alpine:3", ("/bin/sh",)),
        ("node:22-alpine", ("node",)),
        ("docker.io/node", ("node",)),
        ("public.ecr.aws/docker/library/python:3.12", ("python3",)),
        ("docker:27-cli", ("sh",)),
        ("php:8.3", ("php", "-a")),
        ("php:8.3-zts-alpine", ("php", "-a")),
        ("alpine/git", ("git", "--help")),
        ("curlimages/curl:8.11.1", ("curl",)),
    ],
)
def test_default_command_of_known_image_runs_without_command_of_pod(image, command):
    assert command_of(IMAGES, {"image": image}) == command


@pytest.mark.parametrize(
    "image",
    ["calico/node:v3", "registry.example/team/node", "docker:27", "wordpress:cli"],
)
def test_image_with_the_last_word_or_another_tag_of_known_image_is_unknown(image):
    assert IMAGES.behavior_of_image(image) is None


def test_variants_of_an_image_have_entries_of_their_own():
    ports = {
        image: set(IMAGES.behavior_of_image(image).ports)
        for image in ("php:8-cli", "php:8-apache", "php:8-fpm-alpine")
    }
    assert ports == {"php:8-cli": set(), "php:8-apache": {80}, "php:8-fpm-alpine": {9000}}
    assert (
        IMAGES.behavior_of_image("gcr.io/google-samples/hello-app:2.0")
        .ports[8080]
        .routes[0]
        .body.startswith("Hello, world!\nVersion: 2.0.0")
    )


def test_image_of_another_repository_is_not_held_to_what_the_known_one_requires():
    official, mirror, other = (
        IMAGES.behavior_of_image(name)
        for name in (
            "postgres:17",
            "registry.corp:5000/library/postgres:17",
            "registry.corp:5000/team/postgres:17",
        )
    )
    assert official == mirror
    assert official.requires
    assert other.ports == official.ports
    assert (other.requires, other.programs, other.env) == ((), None, {})


def test_arguments_that_begin_with_a_program_replace_a_wrapping_entrypoint():
    assert command_of(IMAGES, {"image": "curlimages/curl", "args": ["sh", "-c", "x"]}) == ("sh", "-c", "x")
    assert command_of(IMAGES, {"image": "appropriate/curl", "args": ["sh"]}) == ("curl", "sh")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"image": "mongo:7"}, True),
        ({"image": "mongo:7", "args": ["--auth"]}, True),
        ({"image": "mongo:7", "args": ["mongod", "--auth"]}, True),
        ({"image": "mongo:7", "args": ["--version"]}, False),
        ({"image": "mongo:7", "args": ["sh"]}, False),
        ({"image": "mongo:7", "command": ["/usr/bin/mongod"]}, True),
        ({"image": "mongo:7", "command": ["mongosh"]}, False),
        ({"image": "nginx:1.25", "command": ["nginx"]}, False),
        ({"image": "nginx:1.25", "command": ["nginx", "-g", "daemon off;"]}, True),
        ({"image": "yinfangchen/hotelreservation", "command": ["geo"]}, False),
        ({"image": "nginx:1.25", "args": ["-g", "daemon off;"]}, False),
        ({"image": "nginx:1.25", "args": ["nginx", "-g", "daemon off;"]}, True),
        ({"image": "busybox"}, False),
        ({"image": "example.org/app", "args": ["--port=1"]}, False),
    ],
)
def test_server_runs_with_options_for_it(fields, expected):
    assert runs_server(IMAGES, {"name": "c", **fields}) is expected


@pytest.mark.parametrize(
    ("image", "protocols"),
    [("redis:7", {"redis"}), ("nginx", set()), ("example/unknown", set()), ("", set())],
)
def test_protocols_of_an_image_are_those_besides_http(image, protocols):
    assert protocols_of(IMAGES, {"image": image}) == protocols
