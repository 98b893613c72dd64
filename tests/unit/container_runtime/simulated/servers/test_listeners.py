"""A container listens on the ports of its image's server, or of the servers in its own command."""

import pytest

from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.simulated.predictions import unknown_program
from mockube.container_runtime.simulated.servers.listeners import listeners_of
from tests.support.images import IMAGES

NETEXEC = "registry.k8s.io/e2e-test-images/agnhost:2.47"


def listeners(**container):
    described = {"name": "c", "image": "busybox", **container}
    pod = {"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {"containers": [described]}}
    return listeners_of(IMAGES, pod, described)


def script(text, **fields):
    return {"command": ["sh", "-c", text], **fields}


@pytest.mark.parametrize(
    ("container", "ports"),
    [
        ({"image": "nginx"}, {80}),
        ({"image": "nginx", "command": ["sleep", "1d"]}, set()),
        ({"image": "nginx", "command": ["nginx", "-g", "daemon off;"]}, {80}),
        ({"image": "nginx", **script("echo a > /usr/share/nginx/html/a; exec nginx -g 'daemon off;'")}, {80}),
        ({"image": "nginx", "env": [{"name": "PORT", "value": "90"}]}, {80}),
        ({"image": "httpd", "command": ["httpd-foreground"]}, {80}),
        ({"image": "httpd", "command": ["tini", "-e", "143", "--", "httpd-foreground"]}, {80}),
        ({"image": "postgres", "args": ["-c", "max_connections=200"]}, {5432}),
        ({"image": "postgres", "args": ["-p", "5433"]}, {5433}),
        ({"image": "mysql", "args": ["--port=3307"]}, {3307}),
        ({"image": "bitnami/nginx", "env": [{"name": "NGINX_HTTP_PORT_NUMBER", "value": "81"}]}, {81}),
        ({"image": "traefik/whoami", "args": ["--port", "81"]}, {81}),
        ({"image": "gcr.io/google-samples/hello-app:1.0", "env": [{"name": "PORT", "value": "81"}]}, {81}),
        ({"image": "ghcr.io/stefanprodan/podinfo:6.9.0", "command": ["./podinfo", "--port=9899"]}, {9899}),
        ({"image": NETEXEC}, set()),
        ({"image": NETEXEC, "args": ["pause"]}, set()),
        ({"image": NETEXEC, "args": ["netexec"]}, {8080}),
        ({"image": NETEXEC, "args": ["netexec", "--http-port=$(P)"], "env": [{"name": "P", "value": "9"}]}, {9}),
        ({"image": NETEXEC, "command": ["/agnhost", "serve-hostname"]}, {9376}),
        ({"image": NETEXEC, "args": ["test-webserver", "--port", "81"]}, {81}),
        ({"image": NETEXEC, "args": ["grpc-health-checking"]}, {5000, 8080}),
        ({"image": "hashicorp/http-echo:1.0", "args": ["-text=hello"]}, {5678}),
        ({"image": "hashicorp/http-echo:1.0", "args": ["-text", "hello", "-listen", ":81"]}, {81}),
        ({"image": "python:3", "command": ["python3", "-m", "http.server"]}, {8000}),
        ({"image": "python:3", **script("mkdir /www && cd /www && python -m http.server ${PORT:-81}")}, {81}),
        ({"command": ["nc", "-lk", "-p", "81", "-e", "cat"]}, {81}),
        ({"command": ["nc", "-l", "0.0.0.0", "81"]}, {81}),
        ({"command": ["nc", "-lkp81"]}, {81}),
        ({"command": ["nc", "-lu", "-p", "81"]}, set()),
        ({"command": ["nc", "-z", "db", "81"]}, set()),
        ({"command": ["httpd", "-f", "-p", "0.0.0.0:81", "-h", "/www"]}, {81}),
        ({"command": ["httpd", "-fvp81"]}, {81}),
        (script("while true; do { echo -e 'HTTP/1.1 200 OK\\r\\n; a'; cat b; } | nc -l -p 81; done"), {81}),
        (script("nc -l -p 81 >/dev/null 2>&1 & sleep 1d"), {81}),
        (script("# nc -l -p 81; python\nsleep 1d"), set()),
        (script("for i in nc 2; do date >> /tmp/a; done; sleep 1d"), set()),
        (script("touch /tmp/healthy; sleep 30; rm -f /tmp/healthy; sleep 600"), set()),
        (script('exec "$@"'), set()),
        ({"image": "alpine"}, set()),
        ({"image": "registry.k8s.io/pause:3.10"}, set()),
    ],
)  # fmt: skip
def test_ports_of_known_programs(container, ports):
    subject = listeners(**container)
    assert (subject.ports.keys(), subject.unknown) == (ports, "")


@pytest.mark.parametrize(
    ("container", "unknown"),
    [
        ({"image": "example/own"}, "the image example/own"),
        ({"image": "example.org/team/nginx"}, "the image example.org/team/nginx"),
        ({"image": "example/own", "args": ["--port=81"]}, "the image example/own"),
        ({"image": "example/own", "command": ["/usr/bin/tini", "-g", "--", "serve"]}, "serve of the image example/own"),
        ({"image": "example/own", "command": ["dumb-init", "--rewrite", "15:3", "serve"]}, "serve of the image example/own"),
        ({"image": "example/own", "command": ["bash", "-c", "exec -a x env -u A -i B=1 serve"]}, "serve of the image example/own"),
        ({"image": "example/own", "command": ["/server", "--port=81"]}, "server of the image example/own"),
        ({"image": "example/own", **script("prepare; exec /server")}, "prepare of the image example/own"),
        ({"image": "example/own", "command": ["sh", "/start.sh"]}, "start.sh of the image example/own"),
        ({"image": "python:3", "command": ["python", "app.py"]}, "python of the image python:3"),
        ({"image": "nginx", "volumeMounts": [{"name": "v", "mountPath": "/etc/nginx/conf.d"}]}, "the configuration in /etc/nginx of the image nginx"),
        ({"image": "tomcat", **script("echo x > /usr/local/tomcat/conf/server.xml; catalina.sh")}, "the configuration of the image tomcat"),
        ({"image": "redis", "args": ["/etc/redis/redis.conf"], "volumeMounts": [{"name": "v", "mountPath": "/etc/redis"}]}, "the image redis"),
        ({"image": "redis", "command": ["redis-server", "/c/redis.conf"], "volumeMounts": [{"name": "v", "mountPath": "/c"}]}, "the configuration in /c/redis.conf of the image redis"),
        ({"image": "bitnami/redis", "envFrom": [{"configMapRef": {"name": "a"}}]}, "the variables of the image bitnami/redis"),
    ],
)  # fmt: skip
def test_program_that_is_not_simulated_may_listen_on_any_port(container, unknown):
    subject = listeners(**container)
    assert subject.unknown == unknown
    assert subject.may_listen(81)


def test_port_that_an_argument_names_may_be_open():
    subject = listeners(image="mongo", args=["--ipv6", "--other-port", "27019"])
    assert subject.may_listen(27017)
    assert subject.may_listen(27019)
    assert not subject.may_listen(27018)


def test_script_in_an_annotation_stands_for_a_program_that_may_listen():
    pod = {"metadata": {"name": "p", "annotations": {"mockube.dev/run": "sleep 1d"}}, "spec": {}}
    assert listeners_of(IMAGES, pod, {"name": "c", "image": "nginx"}).unknown == "the script in an annotation"


@pytest.mark.parametrize(
    ("container", "root"),
    [
        (script("mkdir /www; cd /www; python3 -m http.server 81", image="python:3"), "/www"),
        (script("mkdir -p /srv/www; cd /srv && cd www && httpd -f -p 81"), "/srv/www"),
        ({"command": ["httpd", "-f", "-p", "81"], "workingDir": "/data"}, "/data"),
        ({"image": "python:3", "command": ["python3", "-m", "http.server", "-d", "/files", "81"]}, "/files"),
        ({"command": ["httpd", "-f", "-p", "81"]}, "/"),
    ],
)
def test_server_of_files_serves_its_working_folder(container, root):
    assert listeners(**container).ports[81].root == root


@pytest.mark.parametrize(
    ("image", "others", "is_known"),
    [
        pytest.param("bitnami/nginx", ["bitnami/nginx"], True, id="its entrypoint fills the volume"),
        pytest.param("bitnami/nginx", ["busybox"], False, id="another image may write there"),
        pytest.param("nginx", ["nginx"], False, id="an image that needs a configuration"),
    ],
)
def test_empty_volume_is_filled_with_the_configuration_of_some_images(image, others, is_known):
    mount = {"name": "e", "mountPath": "/etc/nginx" if image == "nginx" else "/opt/bitnami/nginx/conf"}
    container = {"name": "c", "image": image, "volumeMounts": [mount]}
    init = [{"name": f"i{at}", "image": other, "volumeMounts": [mount]} for at, other in enumerate(others)]
    spec = {
        "containers": [container],
        "initContainers": init,
        "volumes": [{"name": "e", "emptyDir": {}}],
    }
    found = listeners_of(IMAGES, {"metadata": {"name": "p"}, "spec": spec}, container)
    assert (not found.unknown) is is_known


@pytest.mark.parametrize(
    ("image", "fields", "ports"),
    [
        ("hashicorp/vault:1.15", {"args": ["server", "-dev"]}, [8200, 8201]),
        (
            "hashicorp/vault:1.15",
            {"command": ["vault", "server", "-dev", "-dev-listen-address=:8300"]},
            [8201, 8300],
        ),
        ("prom/prometheus:v2.45.0", {"args": ["--web.listen-address=0.0.0.0:9191"]}, [9191]),
        ("hashicorp/http-echo", {"args": ["-text=hi", "-listen=:8080"]}, [8080]),
        ("redis:7", {"command": ["sh", "-c", "redis-server --requirepass $P"]}, [6379]),
    ],
)
def test_server_that_a_command_starts_with_options_is_known(image, fields, ports):
    container = {"name": "c", "image": image, **fields}
    pod = {"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [container]}}
    listeners = listeners_of(IMAGES, pod, container)
    assert sorted(listeners.ports) == ports
    assert all(listeners.ports.values())
    assert unknown_program(IMAGES, pod, container, script_of({})) == ""


def test_server_of_a_configuration_in_a_file_is_not_known():
    container = {
        "name": "c",
        "image": "hashicorp/vault:1.15",
        "args": ["server", "-config=/vault/config/x.hcl"],
    }
    pod = {"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [container]}}
    assert unknown_program(IMAGES, pod, container, script_of({})) != ""
