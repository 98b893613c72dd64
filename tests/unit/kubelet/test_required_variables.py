"""Containers whose image's entrypoint requires variables."""

import pytest
from msgspec.structs import replace

from mockube.container_runtime.config.environment import References
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.simulated.programs.requirements import end_of_entrypoint, unmet_requirement
from tests.support.controllers.pods import SimulatedPod, container, node_context, pod
from tests.support.images import IMAGES

PASSWORD = [{"name": "MYSQL_ROOT_PASSWORD", "value": "secret"}]
REPLICA = [{"name": f"{name}_REPLICATION_MODE", "value": "slave"} for name in ("POSTGRESQL", "MARIADB")] + [
    {"name": "POSTGRESQL_PASSWORD", "value": "x"}
]


class Objects:
    """The objects of a namespace that variables come from."""

    attaches_volumes = False

    def __init__(self, secret=None, config_map=None):
        self._secret, self._config_map = secret, config_map

    def secret(self, _):
        return self._secret

    def config_map(self, _):
        return self._config_map

    def trust_bundles(self):
        return ()

    def cached_object(self, *_):
        return None


def simulated(described, *, objects=None, annotations=None, **spec):
    context = node_context(details=True)
    if objects is not None:
        context = replace(context, objects=objects)
    return SimulatedPod(pod(described, annotations=annotations, **spec), context=context)


def test_database_without_its_variable_crashes_and_is_restarted():
    subject = simulated(container(image="mysql:8.4"))
    assert subject.containers() == {"c": "CrashLoopBackOff"}
    end = subject.status["containerStatuses"][0]["lastState"]["terminated"]
    assert (end["exitCode"], end["reason"]) == (1, "Error")


@pytest.mark.parametrize(
    ("image", "env", "runs"),
    [
        ("mysql:8.4", PASSWORD, True),
        ("mysql:8.4", [{"name": "MYSQL_ROOT_PASSWORD", "value": ""}], False),
        ("mysql:8.4", [{"name": "MYSQL_ALLOW_EMPTY_PASSWORD", "value": "yes"}], True),
        ("postgres:16", PASSWORD, False),
        ("postgres:16", [{"name": "POSTGRES_HOST_AUTH_METHOD", "value": "trust"}], True),
        ("postgres:16", [{"name": "POSTGRES_HOST_AUTH_METHOD", "value": "md5"}], False),
        ("mongo:7", [], True),
        ("mongo:7", [{"name": "MONGO_INITDB_ROOT_USERNAME", "value": "root"}], False),
        ("redis:7", [], True),
        ("mysql:8.4", [*PASSWORD, {"name": "MYSQL_USER", "value": "root"}], False),
        ("mysql:8.4", [*PASSWORD, {"name": "MYSQL_USER", "value": "app"}], True),
        ("bitnami/mariadb:11.4", [], False),
        ("bitnami/mariadb:11.4", [{"name": "MARIADB_ROOT_PASSWORD", "value": "x"}], True),
        ("bitnami/redis:7.2", [], False),
        ("bitnami/redis:7.2", [{"name": "ALLOW_EMPTY_PASSWORD", "value": "yes"}], True),
        ("registry.example/team/mysql:8", [], True),
        ("rabbitmq:4", [{"name": "RABBITMQ_VM_MEMORY_HIGH_WATERMARK", "value": "0.4"}], False),
        ("edoburu/pgbouncer:v1.24.1-p1", [], False),
        ("edoburu/pgbouncer:v1.24.1-p1", [{"name": "DB_HOST", "value": "db"}], True),
        ("rabbitmq:3.8", [{"name": "RABBITMQ_VM_MEMORY_HIGH_WATERMARK", "value": "0.4"}], True),
        ("bitnami/postgresql:17", [*REPLICA, {"name": "POSTGRESQL_MASTER_HOST", "value": "db"}], False),
        ("bitnami/mariadb:11.4", [{"name": "MARIADB_REPLICATION_MODE", "value": "slave"}], False),
        ("bitnami/mariadb:11.4", [*REPLICA, {"name": "MARIADB_MASTER_HOST", "value": "db"}], True),
    ],
)
def test_variables_of_the_container_decide(image, env, runs):
    subject = simulated(container(image=image, env=env))
    assert subject.containers() == {"c": "running" if runs else "CrashLoopBackOff"}


@pytest.mark.parametrize(
    ("fields", "runs"),
    [
        ({"args": ["--max-connections=100"]}, False),
        ({"args": ["mysqld"]}, False),
        ({"args": ["bash", "-c", "sleep 1d"]}, True),
        ({"command": ["sh", "-c", "sleep 1d"]}, True),
    ],
)
def test_only_the_entrypoint_requires_variables(fields, runs):
    subject = simulated(container(image="mysql:8.4", **fields))
    assert subject.containers() == {"c": "running" if runs else "CrashLoopBackOff"}


@pytest.mark.parametrize("reference", ["env", "envFrom"])
def test_variable_of_a_secret_counts(reference):
    selector = {"name": "mysql"}
    env = {
        "name": "MYSQL_ROOT_PASSWORD",
        "valueFrom": {"secretKeyRef": {**selector, "key": "MYSQL_ROOT_PASSWORD"}},
    }
    fields = {"env": [env]} if reference == "env" else {"envFrom": [{"secretRef": selector}]}
    secret = {
        "metadata": {"name": "mysql"},
        "data": {"MYSQL_ROOT_PASSWORD": None},
    }  # as in the kubelet's cache
    described = container(image="mysql:8.4", **fields)
    assert simulated(described, objects=Objects(secret=secret)).containers() == {"c": "running"}
    if reference == "envFrom":
        empty = {"metadata": {"name": "mysql"}, "data": {"MYSQL_USER": ""}}
        assert simulated(described, objects=Objects(secret=empty)).containers() == {"c": "CrashLoopBackOff"}


def test_unknown_object_may_have_the_variable():
    described = container(image="mysql:8.4", envFrom=[{"configMapRef": {"name": "settings"}}])
    end = end_of_entrypoint(IMAGES, pod(described), described, script_of({}), lambda _: {}, lambda _: None)
    assert end is None


@pytest.mark.parametrize(
    ("volume", "runs"),
    [
        ({"emptyDir": {}}, False),
        ({"persistentVolumeClaim": {"claimName": "data"}}, False),
        ({"hostPath": {"path": "/srv/mysql"}}, True),
    ],
)
def test_volume_that_may_have_a_database_requires_nothing(volume, runs):
    described = container(image="mysql:8.4", volumeMounts=[{"name": "data", "mountPath": "/var/lib/mysql"}])
    tree = pod(described, volumes=[{"name": "data", **volume}])
    end = end_of_entrypoint(IMAGES, tree, described, script_of({}), lambda _: None, lambda _: None)
    assert (end is None) is runs


def test_annotations_that_script_the_run_need_no_variable():
    for annotation in ({"mockube.dev/ignore-missing": "true"}, {"mockube.dev/run": "sleep 1d"}):
        assert simulated(container(image="mysql:8.4"), annotations=annotation).containers() == {
            "c": "running"
        }


@pytest.mark.parametrize(
    ("image", "path", "env", "runs"),
    [
        ("postgres:18", "/var/lib/postgresql/data", [], False),
        ("postgres:latest", "/var/lib/postgresql/data/", [], False),
        ("postgres:alpine", "/var/lib/postgresql/data", [], False),
        ("postgres:17.6-alpine", "/var/lib/postgresql/data", [], True),
        ("postgres:18", "/var/lib/postgresql", [], True),
        ("postgres:18", "/var/lib/postgresql/data", [{"name": "PGDATA", "value": "/var/lib/postgresql/data/pg"}], True),
        ("postgres@sha256:" + "0" * 64, "/var/lib/postgresql/data", [], True),
    ],
)  # fmt: skip
def test_postgres_18_does_not_start_with_a_volume_at_the_old_path(image, path, env, runs):
    described = container(image=image, env=[{"name": "POSTGRES_PASSWORD", "value": "x"}, *env])
    described["volumeMounts"] = [{"name": "data", "mountPath": path}]
    subject = simulated(described, volumes=[{"name": "data", "emptyDir": {}}])
    assert subject.containers() == {"c": "running" if runs else "CrashLoopBackOff"}


SECRET = {"metadata": {"name": "s"}, "data": {"password": None}}  # as in the kubelet's cache


def file_variable(image, name, path, **variables):
    env = [
        {"name": name, "value": path},
        *({"name": key, "value": value} for key, value in variables.items()),
    ]
    return container(image=image, env=env, volumeMounts=[{"name": "s", "mountPath": "/secrets"}])


@pytest.mark.parametrize(
    ("image", "name", "lines"),
    [
        ("postgres:17", "POSTGRES_PASSWORD_FILE", ["/usr/local/bin/docker-entrypoint.sh: line 21: /secrets/nope: No such file or directory"]),
        ("postgres:17", "POSTGRES_USER_FILE", ["/usr/local/bin/docker-entrypoint.sh: line 21: /secrets/nope: No such file or directory"]),
        ("mysql:8.4", "MYSQL_DATABASE_FILE", ["/usr/local/bin/docker-entrypoint.sh: line 39: /secrets/nope: No such file or directory"]),
        ("mariadb:11.8", "MARIADB_PASSWORD_FILE", ["/usr/local/bin/docker-entrypoint.sh: line 36: /secrets/nope: No such file or directory"]),
        ("mysql:8.4", "MYSQL_ROOT_PASSWORD_FILE", ["/usr/local/bin/docker-entrypoint.sh: line 39: /secrets/nope: No such file or directory"]),
        ("mariadb:11.8", "MARIADB_ROOT_PASSWORD_FILE", ["/usr/local/bin/docker-entrypoint.sh: line 36: /secrets/nope: No such file or directory"]),
        ("mongo:8", "MONGO_INITDB_ROOT_PASSWORD_FILE", ["/usr/local/bin/docker-entrypoint.sh: line 83: /secrets/nope: No such file or directory"]),
        ("bitnami/mariadb:11.4", "MARIADB_ROOT_PASSWORD_FILE", ["mariadb WARN  ==> Skipping export of 'MARIADB_ROOT_PASSWORD'. '/secrets/nope' is not readable.", "mariadb ERROR ==> The MARIADB_ROOT_PASSWORD environment variable is empty or not set. Set the environment variable ALLOW_EMPTY_PASSWORD=yes to allow the container to be started with blank passwords. This is recommended only for development."]),
    ],
)  # fmt: skip
def test_variable_with_a_wrong_path_is_not_set(image, name, lines):
    described = file_variable(image, name, "/secrets/nope")
    tree = pod(described, volumes=[{"name": "s", "secret": {"secretName": "s"}}])
    unmet = unmet_requirement(IMAGES, tree, described, References(secrets={"s": SECRET}))
    assert ([*unmet.logs], unmet.exit_code) == (lines, 1)


@pytest.mark.parametrize(
    ("described", "runs"),
    [
        (file_variable("postgres:17", "POSTGRES_PASSWORD_FILE", "/secrets/password"), True),
        (file_variable("postgres:17", "POSTGRES_PASSWORD_FILE", "/secrets/nope"), False),
        (file_variable("postgres:17", "POSTGRES_PASSWORD_FILE", "/run/secrets/nope"), False),
        (file_variable("mysql:8.4", "MYSQL_ROOT_PASSWORD_FILE", "/secrets/nope", MYSQL_ALLOW_EMPTY_PASSWORD="1"), False),
        (file_variable("bitnami/mariadb:11.4", "MARIADB_ROOT_PASSWORD_FILE", "/secrets/password"), True),
        (file_variable("bitnami/mariadb:11.4", "MARIADB_ROOT_PASSWORD_FILE", "/secrets/nope"), False),
        (file_variable("bitnami/mariadb:11.4", "MARIADB_ROOT_PASSWORD_FILE", "/secrets/nope", ALLOW_EMPTY_PASSWORD="yes"), True),
        (file_variable("bitnami/redis:8", "REDIS_PASSWORD_FILE", "/secrets/nope"), False),
        (file_variable("registry.example/team/mysql:8", "MYSQL_ROOT_PASSWORD_FILE", "/secrets/nope"), True),
    ],
)  # fmt: skip
def test_file_of_a_variable_must_exist(described, runs):
    tree = pod(described, volumes=[{"name": "s", "secret": {"secretName": "s"}}])
    end = end_of_entrypoint(IMAGES, tree, described, script_of({}), lambda _: None, lambda _: SECRET)
    assert (end is None) is runs


def test_each_variable_that_must_not_be_set_is_named():
    names = ["RABBITMQ_SSL_VERIFY", "RABBITMQ_VM_MEMORY_HIGH_WATERMARK"]
    subject = container(image="rabbitmq:4", env=[{"name": name, "value": "1"} for name in names])
    found = unmet_requirement(IMAGES, pod(subject), subject, References())
    assert found.logs[:3] == (
        *(f"error: {name} is set but deprecated" for name in names),
        "error: deprecated environment variables detected",
    )
