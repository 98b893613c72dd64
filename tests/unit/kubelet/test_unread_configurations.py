"""A server whose configuration is in a volume reads it, or an Event and the log say that it does not."""

from datetime import UTC, datetime
from math import inf

import pytest

from mockube.container_runtime.config.environment import References
from mockube.container_runtime.images.options import options_of
from mockube.container_runtime.images.table import built_in_images
from mockube.container_runtime.simulated.programs.commands import (
    host_of,
    main_command,
    main_process,
)
from mockube.container_runtime.simulated.programs.program import configured_kind, serves
from mockube.container_runtime.simulated.server_contract import RunningServer
from mockube.container_runtime.simulated.servers.listeners import listeners_of
from mockube.container_runtime.simulated.shell.process import Sleep
from mockube.container_runtime.simulated.shell.programs.installed_servers import kind_of
from tests.support.controllers.pods import SimulatedPod, container, node_context, pod
from tests.support.images import IMAGES

MAP = {"name": "v", "configMap": {"name": "m", "optional": True}}
PASSWORD = {"name": "ALLOW_EMPTY_PASSWORD", "value": "yes"}
PASSWORDS = [
    {"name": name, "value": "yes"}
    for name in ("ALLOW_EMPTY_PASSWORD", "POSTGRES_PASSWORD", "MYSQL_ROOT_PASSWORD")
]
CLAIM = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
EMPTY = {"name": "v", "emptyDir": {}}


def described(image, path, **fields):
    return container(image=image, volumeMounts=[{"name": "v", "mountPath": path}], **fields)


def warnings(subject, volume=MAP, **spec):
    simulated = SimulatedPod(pod(subject, volumes=[volume], **spec), context=node_context(details=True))
    return [event.message for event in simulated.events if event.reason == "NotSimulated"]


def first_line(subject, volume=MAP):
    tree = pod(subject, volumes=[volume])
    host = host_of(IMAGES, tree, subject, References(), datetime(2030, 1, 1, tzinfo=UTC))
    return next(main_process(IMAGES, tree, subject, References(), host)).data.decode()


@pytest.mark.parametrize(
    ("image", "path"),
    [
        ("bitnami/nginx:1.29", "/opt/bitnami/nginx/conf/server_blocks"),
        ("bitnami/apache:2.4", "/opt/bitnami/apache/conf/vhosts"),
        ("rabbitmq:4", "/etc/rabbitmq/conf.d"),
        ("grafana/grafana:12.1.0", "/etc/grafana/grafana.ini"),
        ("registry.example/team/nginx:1", "/etc/nginx/conf.d"),
        ("bitnami/mysql:9.4", "/opt/bitnami/mysql/conf/my.cnf"),
        ("bitnami/mariadb:11.8", "/opt/bitnami/mariadb/conf/my.cnf"),
        ("bitnami/postgresql:17", "/bitnami/postgresql/conf"),
        ("bitnami/mongodb:8.0", "/opt/bitnami/mongodb/conf/mongodb.conf"),
        ("bitnami/redis:8", "/opt/bitnami/redis/mounted-etc"),
        ("bitnami/prometheus:3", "/opt/bitnami/prometheus/conf/prometheus.yml"),
        ("prom/prometheus:v3.5.0", "/etc/prometheus"),
        ("cgr.dev/chainguard/nginx", "/etc/nginx/conf.d"),
        ("grafana/loki:3", "/etc/loki/local-config.yaml"),
        ("otel/opentelemetry-collector:0.130.0", "/etc/otelcol/config.yaml"),
        ("fluent/fluent-bit:4.0", "/fluent-bit/etc/conf"),
        ("bitnami/grafana:12", "/opt/bitnami/grafana/conf/grafana.ini"),
        ("postgres:18", "/docker-entrypoint-initdb.d"),
        ("mysql:9", "/docker-entrypoint-initdb.d/init.sql"),
        ("bitnami/mariadb:11.8", "/docker-entrypoint-initdb.d"),
        ("traefik:v3", "/etc/traefik"),
    ],
)
def test_configuration_that_is_not_read_has_an_event_and_the_log_claims_nothing(image, path):
    subject = described(image, path, env=PASSWORDS)
    end = "is not simulated: the container runs without it until it is stopped"
    assert warnings(subject) == [f"the configuration in {path} of the image {image} {end}"]
    assert (
        first_line(subject) == f"mockube: container c is simulated: the configuration in {path} is not read\n"
    )


@pytest.mark.parametrize(
    ("subject", "volume"),
    [
        pytest.param(described("bitnami/nginx", "/app"), MAP, id="another folder"),
        pytest.param(
            described("bitnami/postgresql", "/bitnami/postgresql", env=[PASSWORD]),
            CLAIM,
            id="a folder of data",
        ),
        pytest.param(
            described(
                "postgres:18", "/secrets", env=[{"name": "POSTGRES_PASSWORD_FILE", "value": "/secrets/pw"}]
            ),
            {"name": "v", "secret": {"secretName": "s", "optional": True}},
            id="a password",
        ),
        pytest.param(described("bitnami/nginx", "/opt/bitnami/nginx/conf"), EMPTY, id="an empty volume"),
        pytest.param(described("httpd", "/usr/local/apache2/conf/extra"), MAP, id="a server that reads it"),
        pytest.param(
            container("c", "sleep", "9", image="rabbitmq", volumeMounts=[{"name": "v", "mountPath": "/etc"}]),
            MAP,
            id="another program",
        ),
    ],
)
def test_other_volumes_and_servers_have_no_event(subject, volume):
    assert warnings(subject, volume) == []


def test_variable_with_options_that_are_not_checked_has_an_event():
    flags = {"name": "MYSQL_EXTRA_FLAGS", "value": "--no-such-option"}
    (message,) = warnings(container(image="bitnami/mysql:9.4", env=[PASSWORD, flags]))
    assert message.startswith("the configuration in MYSQL_EXTRA_FLAGS of the image bitnami/mysql:9.4")
    assert warnings(container(image="bitnami/mysql:9.4", env=[PASSWORD])) == []


@pytest.mark.parametrize(
    ("image", "fields", "name"),
    [
        ("kong:3.9", {"env": [{"name": "KONG_DATABASE", "value": "nonsense"}]}, "KONG_DATABASE"),
        ("elasticsearch:9.0.0", {"env": [{"name": "discovery.type", "value": "x"}]}, "discovery.type"),
        ("traefik:v3.6", {"args": ["--entryPointss.web.address=x"]}, "--entryPointss.web.address"),
        ("traefik:v3.6", {"env": [{"name": "TRAEFIK_LOG_LEVEL", "value": "x"}]}, "TRAEFIK_LOG_LEVEL"),
        ("kong:3.9", {"env": [{"name": "OTHER", "value": "nonsense"}]}, None),
        ("redis:8", {"args": ["--port", "1"]}, None),
    ],
)
def test_variables_and_options_that_are_not_read_are_named(image, fields, name):
    messages = warnings(container(image=image, **fields))
    named = [f"the configuration in {name} of the image {image}"] if name else []
    assert [message.partition(" is not simulated")[0] for message in messages] == named


def test_file_of_options_is_no_password():
    variable = {"name": "RABBITMQ_CONFIG_FILE", "value": "/x/rabbitmq"}
    (message,) = warnings(described("rabbitmq:4", "/x", env=[variable]))
    assert message.startswith("the configuration in /x of the image rabbitmq:4")


def test_databases_whose_configuration_is_not_read_keep_their_ports():
    subject = described("bitnami/mysql:9.4", "/opt/bitnami/mysql/conf/my.cnf")
    assert {*listeners_of(IMAGES, pod(subject, volumes=[MAP]), subject).ports} == {3306}


@pytest.mark.parametrize(
    ("image", "path"), [("rabbitmq:4", "/etc/rabbitmq"), ("prom/prometheus", "/etc/prometheus")]
)
def test_init_container_of_another_image_may_write_a_configuration(image, path):
    subject = described(image, path)
    writer = {**described("busybox", "/conf"), "name": "i", "command": ["touch", "/conf/rabbitmq.conf"]}
    assert len(warnings(subject, EMPTY, initContainers=[writer])) == 1


def servers_of_catalogue():
    for image in built_in_images():
        claims = image.logs or image.ports
        if claims and image.exit_code is None:
            tag = f":{image.tags[0]}" if image.tags else ""
            for name in image.names:
                yield f"{name}{tag}", image


def configuration_places(name, image):
    """Yield where a server of the catalogue has its configuration, and a place that it only knows by its arguments."""
    yield from (path for path in (*image.configuration, *image.unread) if path.startswith("/"))
    for server in image.servers:
        options = options_of(server, name)
        yield from (
            each.replace("*", "x.cnf")
            for each in (options.configuration if options else ())
            if each.startswith("/")
        )
    if kind_of(image) is None:
        yield "/etc/own/settings.yaml"


BROKEN = "}{ broken: [\n"
FILES = ("file", "x.cnf", "nginx.conf", "httpd.conf")
"""The keys of the map: one for a volume of a file, and the names of files in folders."""


def exit_code_of(subject):
    """Return the exit code of a server with a broken file; None for one that runs on."""
    tree = pod(subject, volumes=[MAP])
    references = References(config_maps={"m": {"data": dict.fromkeys(FILES, BROKEN)}})
    host = host_of(IMAGES, tree, subject, references, datetime(2030, 1, 1, tzinfo=UTC))
    server = RunningServer()
    host.find_server = lambda: server
    start = main_command if configured_kind(IMAGES, subject) is not None else main_process
    run = start(IMAGES, tree, subject, references, host)
    for _ in range(1_000):
        try:
            effect = next(run)
        except StopIteration as stop:
            return stop.value
        if isinstance(effect, Sleep) and effect.seconds == inf:
            break
    return None


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "image"), [pytest.param(name, image, id=name) for name, image in servers_of_catalogue()]
)
def test_no_server_of_the_catalogue_claims_to_have_read_a_broken_configuration(name, image):
    wrong = []
    for path in configuration_places(name, image):
        is_file = "." in path.rpartition("/")[2] and not path.endswith(".d")
        mount = {"name": "v", "mountPath": path} | ({"subPath": "file"} if is_file else {})
        subject = container(image=name, volumeMounts=[mount], env=PASSWORDS)
        if serves(IMAGES, subject) and not warnings(subject) and not exit_code_of(subject):
            wrong.append(path)
    assert not wrong


@pytest.mark.parametrize(
    ("image", "arguments", "unread"),
    [
        ("prom/node-exporter:v1.9.1", ["--path.procf=/x"], "the option path.procf"),
        ("grafana/loki:3.5.0", ["-config.fil=/x"], "the option -config.fil"),
        ("influxdb:2", ["--bogus"], "the option --bogus"),
        ("registry.example/team/redis:1", ["--port", "6380", "--bogus", "1"], "the option --bogus"),
        ("mysql:8", ["--performance-schema-bogus=1"], "the option performance-schema-bogus"),
        ("postgres:25", ["-c", "something_new=on"], "the option something_new"),
        ("redis:7", ["--tls-cert-file", "/tls/x.crt"], "the file /tls/x.crt of the option tls-cert-file"),
        ("grafana/grafana:12.1.0", ["--config=/etc/grafana/x.ini"], "the file /etc/grafana/x.ini of the option config"),
    ],
)  # fmt: skip
def test_unlisted_argument_has_an_event_and_the_log_claims_nothing(image, arguments, unread):
    subject = container(image=image, args=arguments, env=PASSWORDS)
    end = "is not simulated: the container runs without it until it is stopped"
    assert warnings(subject) == [f"{unread} of the image {image} {end}"]
    assert first_line(subject) == f"mockube: container c is simulated: {unread} is not read\n"


@pytest.mark.parametrize(
    ("image", "arguments"),
    [
        ("prom/node-exporter:v1.9.1", ["--path.procfs=/host/proc", "--no-collector.wifi", "-v"]),
        ("registry.example/team/redis:1", ["--port", "6380"]),
        ("postgres:16", ["-c", "max_connections=10", "-c", "pg_stat_statements.track=all"]),
        ("mysql:8", ["--loose-bogus=1", "--ssl-ca=/etc/ssl/certs/ca-certificates.crt"]),
        ("grafana/grafana:12.1.0", ["--config=/etc/grafana/grafana.ini"]),
        ("redis:7", ["--logfile", "/data/log"]),
        ("quay.io/coreos/etcd:v3.5.0", ["--data-dir=/x"]),
    ],
)
def test_listed_arguments_have_no_event(image, arguments):
    subject = container(image=image, args=arguments, env=PASSWORDS)
    assert not warnings(subject)


@pytest.mark.parametrize(
    ("image", "variables", "unread"),
    [
        (
            "clickhouse:25",
            {"CLICKHOUSE_PASSWORD_FILE": "/secrets/x"},
            "the file /secrets/x of the variable CLICKHOUSE_PASSWORD_FILE",
        ),
        (
            "cassandra:5",
            {"CASSANDRA_ENDPOINT_SNITCH": "NopeSnitch"},
            "the configuration in CASSANDRA_ENDPOINT_SNITCH",
        ),
        ("sonarqube:community", {"SONAR_JDBC_URL": "jdbc:x"}, "the configuration in SONAR_JDBC_URL"),
    ],
)
def test_variable_that_is_not_read_has_an_event(image, variables, unread):
    subject = container(
        image=image, env=[{"name": name, "value": value} for name, value in variables.items()]
    )
    assert [message.partition(" of the image ")[0] for message in warnings(subject)] == [unread]


def test_wrong_option_ends_server_without_an_event():
    assert not warnings(container(image="mongo:8", args=["--replset", "rs0"]))


def test_file_that_a_volume_may_have_has_no_event():
    subject = described("redis:7", "/tls", args=["--tls-cert-file", "/tls/x.crt"])
    assert not warnings(subject, EMPTY)
