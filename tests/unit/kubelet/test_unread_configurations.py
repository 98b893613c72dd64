"""A server whose configuration is in a volume reads it, or an Event and the log say that it does not."""

from datetime import UTC, datetime

import pytest

from mockube.container_runtime.config.environment import References
from mockube.container_runtime.records import Records
from mockube.container_runtime.simulated.live_containers import LiveContainers
from mockube.container_runtime.simulated.programs.commands import host_of, main_process
from mockube.container_runtime.simulated.servers.listeners import listeners_of
from tests.support.controllers.pods import SimulatedPod, container, node_context, pod
from tests.support.images import IMAGES

MAP = {"name": "v", "configMap": {"name": "m", "optional": True}}
PASSWORD = {"name": "ALLOW_EMPTY_PASSWORD", "value": "yes"}
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
    ],
)
def test_configuration_that_is_not_read_has_an_event_and_the_log_claims_nothing(image, path):
    subject = described(image, path, env=[PASSWORD])
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
            described("bitnami/postgresql", "/bitnami/postgresql", env=[PASSWORD]), MAP, id="a folder of data"
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


def test_databases_whose_configuration_is_not_read_keep_their_ports():
    subject = described("bitnami/mysql:9.4", "/opt/bitnami/mysql/conf/my.cnf")
    assert {*listeners_of(IMAGES, pod(subject, volumes=[MAP]), subject).ports} == {3306}


def test_init_container_of_another_image_may_write_a_configuration():
    subject = described("rabbitmq:4", "/etc/rabbitmq")
    writer = {**described("busybox", "/conf"), "name": "i", "command": ["touch", "/conf/rabbitmq.conf"]}
    assert len(warnings(subject, EMPTY, initContainers=[writer])) == 1


@pytest.mark.parametrize("name", ["haproxytech/haproxy-alpine:3.2", "docker.io/haproxytech/haproxy-debian"])
def test_images_of_the_vendor_of_haproxy_read_their_configuration(name):
    subject = described(name, "/usr/local/etc/haproxy")
    assert LiveContainers(IMAGES, Records()).command(pod(subject, volumes=[MAP]), subject)[0] == "haproxy"
    assert warnings(subject) == []
