"""Ports of containers are open and answer by annotation, image and declaration."""

import pytest

from mockube.container_runtime.simulated.connections.port_answers import (
    ReceivedRequest,
    fixed_answer,
    missing_answer,
    open_port,
    reply_to,
)
from mockube.container_runtime.simulated.servers.http_paths import served_file
from tests.support.images import IMAGES

DECLARED = [{"containerPort": 8000}, {"containerPort": 53, "protocol": "UDP"}]


def pod(*, annotations=None, state="running", **container):
    return {
        "metadata": {"name": "web-0", "namespace": "shop", "annotations": annotations or {}},
        "spec": {"containers": [{"name": "c", "image": "example.org/own", **container}]},
        "status": {"podIP": "10.244.0.5", "containerStatuses": [{"name": "c", "state": {state: {}}}]},
    }


def answer(tree, port, path="/", method="GET", **headers):
    opened = open_port(IMAGES, tree, port)
    return fixed_answer(tree, port, opened, ReceivedRequest(method=method, path=path, headers=headers))


@pytest.mark.parametrize(
    ("tree", "port", "protocol", "is_open"),
    [
        (pod(ports=DECLARED), 8000, "TCP", True),
        (pod(ports=DECLARED), 8001, "TCP", False),
        (pod(ports=DECLARED), 53, "UDP", True),
        (pod(ports=DECLARED), 53, "TCP", False),
        (pod(ports=DECLARED, state="waiting"), 8000, "TCP", False),
        (pod(annotations={"mockube.dev/answer.90": "x"}), 90, "TCP", True),
        (pod(image="nginx"), 80, "TCP", True),
        (pod(image="nginx"), 81, "TCP", False),
        (pod(image="nginx", command=["nginx", "-g", "daemon off;"]), 80, "TCP", True),
        (pod(image="nginx", command=["sh", "-c", "exec nginx"]), 80, "TCP", True),
        (pod(image="nginx", command=["sleep", "infinity"]), 80, "TCP", False),
        (pod(image="agnhost"), 8080, "TCP", False),
        (pod(image="agnhost", args=["netexec"]), 8080, "TCP", True),
        (pod(image="nginx", ports=[{"containerPort": 8080}]), 8080, "TCP", False),
        (pod(command=["sleep", "1d"], ports=DECLARED), 8000, "TCP", False),
        (pod(command=["/server"], ports=DECLARED), 8000, "TCP", True),
    ],
)
def test_port_is_open_if_something_listens(tree, port, protocol, is_open):
    assert (open_port(IMAGES, tree, port, protocol) is not None) is is_open


def test_answer_of_annotation_goes_before_that_of_image():
    tree = pod(image="nginx", annotations={"mockube.dev/answer.80": "mine"})
    assert answer(tree, 80).body == b"mine"


def test_answer_of_unknown_image_names_the_pod():
    text = answer(pod(ports=DECLARED), 8000, "/x?y").body.decode()
    assert text == (
        "mockube: pod shop/web-0 is simulated, but not the image example.org/own: GET /x?y on port 8000\n"
    )


def test_server_of_unknown_image_answers_with_tls_and_without():
    opened = open_port(IMAGES, pod(ports=DECLARED), 8000)
    assert opened.uses_tls is None


def test_ports_of_an_image_with_several_servers_are_those_of_the_program():
    tree = pod(image="yinfangchen/hotelreservation", command=["geo"])
    assert [port for port in (5000, 8081, 8083) if open_port(IMAGES, tree, port)] == [8083]


def test_server_with_configuration_in_a_volume_has_unknown_answers():
    mounts = [{"name": "v", "mountPath": "/etc/nginx/conf.d"}]
    body = answer(pod(image="nginx", volumeMounts=mounts), 80).body
    assert b"but not the configuration in /etc/nginx of the image nginx:" in body
    other = [{"name": "v", "mountPath": "/usr/share/nginx/html"}]
    assert answer(pod(image="nginx", volumeMounts=other), 80) is None


def test_whoami_repeats_the_request():
    text = answer(pod(image="traefik/whoami"), 80, "/a", host="who.example", accept="*/*").body.decode()
    assert text == (
        "Hostname: web-0\nIP: 10.244.0.5\nRemoteAddr: 127.0.0.1\nGET /a HTTP/1.1\nHost: who.example\nAccept: */*\n"
    )


def test_routes_match_exactly_or_below_their_path():
    tree = pod(image="agnhost", args=["netexec"])
    assert answer(tree, 8080, "/hostname").body == b"web-0"
    assert answer(tree, 8080, "/hostname/x").body.startswith(b"NOW: ")
    assert answer(pod(image="agnhost", args=["liveness"]), 8080, "/healthz/x") is None


FILES = ("/usr/share/nginx/html/index.html", "/usr/share/nginx/html/a/b.txt", "/etc/passwd")


def kind(path):
    if path in FILES:
        return "file"
    return "folder" if any(file.startswith(f"{path}/") for file in FILES) else ""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/", (200, "/usr/share/nginx/html/index.html", "")),
        ("/a/b.txt?c=/", (200, "/usr/share/nginx/html/a/b.txt", "")),
        ("/a", (301, "/usr/share/nginx/html/a", "/a/")),
        ("/a/", (403, "/usr/share/nginx/html/a", "")),
        ("/b/", (404, "/usr/share/nginx/html/b/index.html", "")),
        ("/../../etc/passwd", (404, "/usr/share/nginx/html/etc/passwd", "")),
        ("//etc/passwd", (404, "/usr/share/nginx/html/etc/passwd", "")),
    ],
)
def test_server_of_files_answers_from_its_folder_only(path, expected):
    served = served_file(open_port(IMAGES, pod(image="nginx"), 80).behavior, path, kind)
    assert (served.status, served.path, served.location) == expected


def test_server_of_other_protocol_replies_to_its_words():
    opened = open_port(IMAGES, pod(image="redis"), 6379)
    assert opened.speaks == "redis"
    assert reply_to(opened.behavior, b"ping\r\n") == b"+PONG\r\n"
    assert reply_to(opened.behavior, b"GET / HTTP/1.1\r\n\r\n") == b""


@pytest.mark.parametrize(
    ("status", "title"), [(404, "404 Not Found"), (403, "403 Forbidden"), (405, "405 Not Allowed")]
)
def test_page_of_nginx_names_its_status(status, title):
    page = missing_answer(IMAGES.behavior_of_image("nginx").ports[80], status)
    assert (page.status, f"<h1>{title}</h1>" in page.body.decode()) == (status, True)
