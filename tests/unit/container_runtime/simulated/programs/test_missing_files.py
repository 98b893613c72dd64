"""A server or an interpreter whose command names a file that certainly does not exist ends as on a node."""

import pytest

from mockube.container_runtime.config.environment import References
from mockube.container_runtime.simulated.programs.missing_files import missing_file
from tests.support.controllers.pods import container, pod
from tests.support.images import IMAGES
from tests.unit.kubelet.test_missing_programs import simulated

MAP = {"metadata": {"name": "m"}, "data": {"app.js": "x", "prometheus.yml": "y"}}
REFERENCES = References(config_maps={"m": MAP})
VOLUMES = [{"name": "v", "configMap": {"name": "m"}}, {"name": "e", "emptyDir": {}}]


def problem(image, *args, command=(), mount=None, **fields):
    mounts = [] if mount is None else [{"name": mount[0], "mountPath": mount[1]}]
    subject = {"name": "c", "image": image, "volumeMounts": mounts, **fields}
    subject |= {"command": [*command]} if command else {}
    subject |= {"args": [*args]} if args else {}
    found = missing_file(IMAGES, pod(subject, volumes=VOLUMES), subject, REFERENCES)
    return None if found is None else (found.logs[-1], found.exit_code)


@pytest.mark.parametrize(
    ("image", "command", "line", "code"),
    [
        ("python:3.12", "python app.py", "python: can't open file '/app.py': [Errno 2] No such file or directory", 2),
        ("eclipse-temurin:17", "java -Xmx1g -jar /app.jar", "Error: Unable to access jarfile /app.jar", 1),
        ("php:8-cli", "php index.php", "Could not open input file: index.php", 1),
        ("ruby:3", "ruby app.rb", "ruby: No such file or directory -- app.rb (LoadError)", 1),
        ("perl:5.34", "perl x.pl", 'Can\'t open perl script "x.pl": No such file or directory', 2),
        ("redis:7", "redis-server /usr/local/etc/redis/redis.conf", "Fatal error, can't open config file '/usr/local/etc/redis/redis.conf': No such file or directory", 1),
        ("redis:7", "redis-server /etc/nosuch.conf", "Fatal error, can't open config file '/etc/nosuch.conf': No such file or directory", 1),
        ("redis:7", "redis-server $(CONF)", "Fatal error, can't open config file '/data/$(CONF)': No such file or directory", 1),
        ("mongo:7", "mongod --config /nope.conf", "try 'mongod --help' for more information", 2),
    ],
)  # fmt: skip
def test_program_says_that_its_file_does_not_exist(image, command, line, code):
    assert problem(image, command=command.split()) == (line, code)


@pytest.mark.parametrize(
    ("image", "args", "code"),
    [
        ("prom/prometheus", ["--config.file=/nope.yml"], 2),
        ("prom/prometheus", ["--config.file", "/nope.yml"], 2),
        ("prom/prometheus", ["--config.file=/etc/prometheus/nope.yml"], 2),
        ("prom/alertmanager", ["--config.file=/etc/alertmanager/nope.yml"], 1),
        ("postgres:16", ["-c", "config_file=/nope.conf"], 2),
        ("mysql:8", ["--defaults-file=/nope.cnf"], 1),
        ("hashicorp/vault", ["server", "-config=/nope.hcl"], 1),
        ("nats", ["-c", "/nope.conf"], 1),
    ],
)
def test_server_with_arguments_ends_without_its_file(image, args, code):
    assert problem(image, *args)[1] == code


@pytest.mark.parametrize(
    ("path", "mount", "is_missing"),
    [
        ("/app/app.js", None, True),
        ("/app/app.js", ("v", "/app"), False),
        ("/app/app.js", ("v", "/src"), True),
        ("/app/main.js", ("v", "/app"), True),
        ("/app/main.js", ("e", "/app"), False),
        ("/usr/src/app/main.js", None, False),
        ("-e", None, False),
    ],
)
def test_file_may_be_in_a_volume_or_in_the_image(path, mount, is_missing):
    found = problem("node:20", command=["node", path], mount=mount)
    assert (found is not None) is is_missing


@pytest.mark.parametrize(
    ("image", "command"),
    [
        ("registry.example/team/node:1", ["node", "/server.js"]),
        ("node:20", ["npm", "start"]),
        ("redis", ["redis-server", "--port", "7000"]),
        ("prom/prometheus", ["prometheus"]),
    ],
)
def test_command_without_a_file_that_is_missing_runs(image, command):
    assert problem(image, command=command) is None


def test_relative_path_is_one_of_the_working_folder():
    found = problem("node:20", command=["node", "app.js"], mount=("v", "/app"), workingDir="/app")
    assert found is None


def test_container_without_its_file_crashes():
    subject = simulated(container("c", "node", "/server.js", image="node:20"), policy="Never")
    assert subject.containers() == {"c": 1}
