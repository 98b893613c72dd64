"""A server with an option that it does not know, or with a wrong value, ends as on a node; any other option changes nothing."""

import pytest

from mockube.container_runtime.config.environment import References
from mockube.container_runtime.images.options import _programs, image_version, options_of, parse_version
from mockube.container_runtime.pod_script import script_of
from mockube.container_runtime.simulated.programs.program import program_of
from mockube.container_runtime.simulated.programs.requirements import end_of_entrypoint, unmet_need
from mockube.container_runtime.simulated.programs.wrong_options import names_options
from tests.support.controllers.pods import pod
from tests.support.images import IMAGES

UNIT_HINT = 'HINT:  Valid units for this parameter are "B", "kB", "MB", "GB", and "TB".'


def problem(image, text, **fields):
    """Return the line that says what is wrong, and the exit code, of a command line or, with a dash first, of arguments."""
    words = text.split()
    field = "args" if text.startswith("-") else "command"
    subject = {
        "name": "c",
        "image": image,
        field: words,
        "env": [{"name": "MYSQL_ROOT_PASSWORD", "value": "x"}],
    }
    subject["env"].append({"name": "POSTGRES_PASSWORD", "value": "x"})
    found = unmet_need(IMAGES, pod({**subject, **fields}), {**subject, **fields}, References())
    return None if found is None else (found.logs, found.exit_code)


@pytest.mark.parametrize(
    ("image", "command", "line", "code"),
    [
        ("redis:7.2.4", "redis-server --maxmemory abc", "argument must be a memory value", 1),
        ("redis:7.2.4", "--port 6380 --bogus 1", '>>> \'bogus "1"\'', 1),
        ("redis:7.2.4", "--port 6380 --bogus 1", "Reading the configuration file, at line 3", 1),
        ("redis:7.2.4", "--bogus", "*** FATAL CONFIG FILE ERROR (Redis 7.2.4) ***", 1),
        ("redis:7", "--maxmemory $(SIZE)", "argument must be a memory value", 1),
        ("mariadb:11", "--innodb-buffer-pool-sise=1G", "\t[ERROR] mariadbd: unknown variable 'innodb-buffer-pool-sise=1G'", 1),
        ("mysql:8", "--innodb-buffer-pool-sise=1G", "\t[ERROR] [MY-000067] [Server] unknown variable 'innodb-buffer-pool-sise=1G'.", 1),
        ("redis:7", "--appendonly maybe", "argument must be 'yes' or 'no'", 1),
        ("redis:7", "--appendfsync never", "argument(s) must be one of the following: everysec, always, no", 1),
        ("redis:7", "--maxmemory", "wrong number of arguments", 1),
        ("valkey/valkey:8.0.1", "--bogus 1", "*** FATAL CONFIG FILE ERROR (Version 8.0.1) ***", 1),
        ("postgres:16", "-c foo=bar", 'FATAL:  unrecognized configuration parameter "foo"', 1),
        ("postgres:16", "postgres --foo=bar", 'FATAL:  unrecognized configuration parameter "foo"', 1),
        ("postgres:16", "-c fsync=maybe", 'FATAL:  parameter "fsync" requires a Boolean value', 1),
        ("postgres:16", "-c max_connections=many", 'FATAL:  invalid value for parameter "max_connections": "many"', 1),
        ("postgres:16", "-c shared_buffers=256m", UNIT_HINT, 1),
        ("postgres:12", "-c wal_keep_size=1GB", 'FATAL:  unrecognized configuration parameter "wal_keep_size"', 1),
        ("postgres:16", "-c fsync", "FATAL:  -c fsync requires a value", 1),
        ("postgres:16", "-Z", "postgres: invalid option -- 'Z'", 1),
        ("postgres:16", "postgres foo", 'postgres: invalid argument: "foo"', 1),
        ("mysql:8", "--no-such", "\t[ERROR] [MY-000068] [Server] unknown option '--no-such'.", 1),
        ("mysql:8", "mysqld --foo=bar", "\t[ERROR] [MY-000067] [Server] unknown variable 'foo=bar'.", 1),
        ("mysql:8.0", "--query-cache-size=0", "\t[ERROR] [MY-000067] [Server] unknown variable 'query-cache-size=0'.", 1),
        ("mysql:8.4", "--default-authentication-plugin=x", "\t[ERROR] [MY-000067] [Server] unknown variable 'default-authentication-plugin=x'.", 1),
        ("mysql:8", "--max_connections=abc", "\t[ERROR] [MY-000077] [Server] mysqld: Error while setting value 'abc' to 'max-connections'.", 1),
        ("nginx:1.27", "nginx -x", 'nginx: invalid option: "x"', 1),
        ("nginx:1.27", "nginx start", 'nginx: invalid option: "start"', 1),
        ("httpd:2.4", "httpd -Z", "httpd: illegal option -- Z", 1),
        ("memcached:1.6", "-J", "memcached: invalid option -- 'J'", 1),
        ("memcached:1.6", "--bogus=1", "memcached: unrecognized option '--bogus=1'", 1),
        ("prom/prometheus", "--bad", "Error parsing command line arguments: unknown long flag '--bad'", 2),
        ("prom/prometheus", "-config.file=/x", "Error parsing command line arguments: unknown short flag '-c'", 2),
        ("prom/alertmanager", "--bad", "alertmanager: error: unknown long flag '--bad', try --help", 1),
        ("nats:2", "--bogus", "flag provided but not defined: -bogus", 0),
        ("nats:2", "-p abc", 'invalid value "abc" for flag -p: parse error', 0),
        ("nats:2", "-js -p", "flag needs an argument: -p", 0),
        ("mariadb:11", "--no-such", "\t[ERROR] mariadbd: unknown option '--no-such'", 1),
        ("mariadb:11", "mariadbd --foo=bar", "\t[ERROR] mariadbd: unknown variable 'foo=bar'", 1),
        ("mariadb:11", "--foo=bar", "\tcommand was: mariadbd --foo=bar --verbose --help", 1),
        ("mongo:7", "mongod --rest", "Error parsing command line: unrecognised option '--rest'", 2),
        ("mongo:7", "--replset rs0", "Error parsing command line: unrecognised option '--replset'", 2),
        ("mongo:7", "--port abc", "Error parsing command line: the argument ('abc') for option '--port' is invalid", 2),
        ("mongo:7", "--port", "Error parsing command line: the required argument for option '--port' is missing", 2),
        ("grafana/grafana:11.0.0", "--bogus", "Error: ✗ flag provided but not defined: -bogus", 1),
        ("grafana/grafana:11.0.0", "grafana server --bogus", "Incorrect Usage: flag provided but not defined: -bogus", 1),
    ],
)  # fmt: skip
def test_wrong_option_ends_server_in_its_words(image, command, line, code):
    lines, exit_code = problem(image, command)
    assert line in lines
    assert exit_code == code


@pytest.mark.parametrize(
    ("image", "command"),
    [
        ("redis:7", "redis-server --maxmemory 100mb --appendonly yes --save 60 1 --search-threads 2"),
        ("redis:7", "redis-server --replicaof redis-0 6379 --slave-read-only no"),
        ("redis:7", "redis-server --maxmemory $(POD_SERVICE_PORT) --some.module-option 1"),
        ("postgres:16", "-c wal_level=logical -c shared_buffers=256MB -c work_mem=4096 -N 100 -p 5433 -d 2"),
        ("postgres:16", "-c shared_preload_libraries=x -c pg_stat_statements.track=all -c TimeZone=UTC --log-statement=all"),
        ("postgres:11", "-c wal_keep_segments=8"),
        ("postgres:25", "-c something_new=on"),
        ("mysql:8.0", "--default-authentication-plugin=x --max_connections=1K --skip-name-resolve --innodb-buffer-pool-size=1G"),
        ("mysql:8", "--loose-group-replication-x=1 --loose_anything --character-set-server utf8mb4 --sql-mode= --log-b=x"),
        ("mysql:5.7", "--query-cache-size=0"),
        ("mariadb:11", "--character-set-server=utf8mb4 --skip-name-resolve --wsrep-on=1 --max_connections=1KB --loose-x=1 --skip-log-bin"),
        ("mongo:7", "mongod --replSet rs0 --bind_ip_all -vvv --keyFile=/k --wiredTigerCacheSizeGB 0.25 --setParameter a=b"),
        ("mongo:4.0", "mongod --smallfiles --noprealloc"),
        ("grafana/grafana:11.0.0", "--config=/x cfg:default.log.mode=console"),
        ("grafana/grafana:11.0.0", "grafana cli --bogus"),
        ("example.org/team/mysql:8", "--no-such"),
        ("redis:7", "sh -c true"),
        ("httpd:2.4", "httpd-foreground -DX -k start"),
        ("memcached:1.6", "memcached -m 64 -vv -o modern --max-item-size=1m -I2m"),
        ("prom/prometheus", "--config.file /etc/prometheus/prometheus.yml --web.enable-lifecycle --no-storage.tsdb.wal-compression"),
        ("nats:2", "-js -m 8222 -DV --cluster_name x --http_port=1"),
        ("nats:2", "nats-server --help --bogus"),
    ],
)  # fmt: skip
def test_right_options_and_unknown_servers_change_nothing(image, command):
    assert problem(image, command) is None


def test_variables_are_replaced_before_options_are_checked():
    variables = [{"name": "SIZE", "value": "much"}]
    assert problem("redis:7", "redis-server --maxmemory $(SIZE)", env=variables)[1] == 1


def test_status_shows_the_end():
    subject = {"name": "c", "image": "redis:7", "args": ["--bogus", "1"]}
    end = end_of_entrypoint(IMAGES, pod(subject), subject, script_of({}), lambda _: None, lambda _: None)
    assert end.exit_code == 1


def test_versions_of_tags_are_the_newest_ones_that_they_allow():
    assert image_version("mysql:8") < parse_version("9")
    assert image_version("mysql:8") >= parse_version("8.4")
    assert image_version("mysql:8.0") < parse_version("8.4")
    assert image_version("mysql") >= parse_version("9.9")
    assert image_version(f"mysql@sha256:{'0' * 64}") is None
    assert problem(f"mysql@sha256:{'0' * 64}", "--query-cache-size=0") is None


def test_data_is_complete():
    for programs in _programs().values():
        for each in programs:
            kinds = {option.kind for option in each.by_name.values()} - {"", "bool", "real"}
            assert kinds <= each.kinds.keys()
            assert each.unknown or each.unknown_letter or each.kinds or each.is_partial
    assert options_of("mysqld", "example.org/team/mysql:8") is not None
    assert options_of("mysqld", "percona:8") is None


def problem_of_file(image, text, path, *args, sub_path=None):
    mount = {"name": "v", "mountPath": path.rpartition("/")[0] if sub_path is None else path}
    mount |= {"subPath": sub_path} if sub_path else {}
    subject = {"name": "c", "image": image, "args": [*args], "volumeMounts": [mount]}
    subject["env"] = [{"name": name, "value": "x"} for name in ("MYSQL_ROOT_PASSWORD", "POSTGRES_PASSWORD")]
    references = References(
        config_maps={"m": {"metadata": {"name": "m"}, "data": {path.rpartition("/")[2]: text}}}
    )
    volumes = [{"name": "v", "configMap": {"name": "m"}}]
    found = unmet_need(IMAGES, pod(subject, volumes=volumes), subject, references)
    return None if found is None else found.logs


REDIS = "/etc/redis/redis.conf"
POSTGRES = "/etc/postgresql/postgresql.conf"
MYSQL = "/etc/mysql/conf.d/my.cnf"


def test_wrong_line_of_redis_configuration_is_printed():
    text = "# comment\nport 6379\n\n  maxmemory lots\n"
    assert problem_of_file("redis:7.2.4", text, REDIS, "redis-server", REDIS) == (
        "",
        "*** FATAL CONFIG FILE ERROR (Redis 7.2.4) ***",
        "Reading the configuration file, at line 4",
        ">>> 'maxmemory lots'",
        "argument must be a memory value",
    )
    right = 'port 6379\nsave ""\nrequirepass "a b"\ninclude /x\nrename-command KEYS ""\n'
    assert problem_of_file("redis:7.2.4", right, REDIS, "redis-server", REDIS) is None
    assert problem_of_file("redis:7.2.4", text, REDIS, "redis-server") is None  # it does not read it


@pytest.mark.parametrize("image", ["redis:8", "valkey/valkey:8"])
@pytest.mark.parametrize("arguments", [[REDIS], ["--include", REDIS], ["--port", "1", "--include", REDIS]])
def test_redis_reads_a_file_that_its_entrypoint_or_an_option_names(image, arguments):
    says = (">>> 'bindd 0.0.0.0'", "Bad directive or wrong number of arguments")
    assert problem_of_file(image, "bindd 0.0.0.0", REDIS, *arguments)[-2:] == says
    assert problem_of_file(image, "bind 0.0.0.0", REDIS, *arguments) is None


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ("exec redis-server --bogus 1", ">>> 'bogus \"1\"'"),
        ("FOO=1 /usr/local/bin/redis-server --bogus 1", ">>> 'bogus \"1\"'"),
        ("exec redis-server --port 1", None),
        ("exec redis-server --port 1 $MORE", None),
        ('exec redis-server --bogus "$@"', ">>> 'bogus'"),
        ("sleep 5; exec redis-server --bogus 1", ">>> 'bogus \"1\"'"),
        ("S=redis; O=--bog; $S-server ${O}us 1", ">>> 'bogus \"1\"'"),
        ("echo bindd x > /tmp/a.conf; redis-server /tmp/a.conf", ">>> 'bindd x'"),
        ("echo port 1 > /tmp/a.conf; redis-server /tmp/a.conf", None),
    ],
)
def test_server_that_a_script_calls_has_its_options_checked(script, line):
    subject = {
        "name": "c",
        "image": "redis:8",
        "command": ["sh", "-c", script],
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    behavior = program_of(IMAGES, subject)
    assert (behavior.exit_code or None) == (line and 1)
    assert [text for text in behavior.message.splitlines() if text.startswith(">>>")] == (
        [line] if line else []
    )


def test_redis_reads_files_that_its_file_includes():
    mount = {"name": "v", "mountPath": "/etc/redis"}
    subject = {"name": "c", "image": "redis:8", "args": [REDIS], "volumeMounts": [mount]}
    data = {
        "a.conf": "bindd x",
        "redis.conf": "include /etc/redis/b.conf",
        "b.conf": "include /etc/redis/a.conf",
    }
    references = References(config_maps={"m": {"metadata": {"name": "m"}, "data": data}})
    described = pod(subject, volumes=[{"name": "v", "configMap": {"name": "m"}}])
    assert unmet_need(IMAGES, described, subject, references).logs[-2] == ">>> 'bindd x'"
    data["redis.conf"] = "port 1"
    assert unmet_need(IMAGES, described, subject, references) is None


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("foo = bar", f'LOG:  unrecognized configuration parameter "foo" in file "{POSTGRES}" line 2'),
        ("fsync = 'maybe'", 'LOG:  parameter "fsync" requires a Boolean value'),
        ("}{ broken", f'LOG:  syntax error in file "{POSTGRES}" line 2, near token "}}"'),
        ("fsync =", f'LOG:  syntax error in file "{POSTGRES}" line 2, near end of line'),
        ("fsync = on off", f'LOG:  syntax error in file "{POSTGRES}" line 2, near token "off"'),
    ],
)
def test_wrong_line_of_postgres_configuration_is_reported(line, says):
    text = f"max_connections = 100 # comment\n{line}\nlisten_addresses '*'\n"
    found = problem_of_file(
        "postgres:16", text, POSTGRES, "-c", f"config_file={POSTGRES}", sub_path="postgresql.conf"
    )
    assert found == (says, f'FATAL:  configuration file "{POSTGRES}" contains errors')
    assert problem_of_file("postgres:16", text, POSTGRES) is None


def test_wrong_line_of_mysql_configuration_is_reported():
    text = "[client]\nfoo=1\n[mysqld]\nmax_connections = 200\nskip-name-resolve\n# x\n"
    assert problem_of_file("mysql:8", text, MYSQL) is None
    found = problem_of_file("mysql:8", f"{text}query_cache_size = 1\n", MYSQL)
    assert "\t[ERROR] [MY-000067] [Server] unknown variable 'query_cache_size=1'." in found
    assert found[2].startswith("\tcommand was: mysqld --verbose --help")


@pytest.mark.parametrize(
    ("image", "text", "line"),
    [
        ("mysql:8", "# x\nport=1\n", f"\tmysqld: [ERROR] Found option without preceding group in config file {MYSQL} at line 2."),
        ("mysql:8", "[mysqld\n", f"\tmysqld: [ERROR] Wrong group definition in config file {MYSQL} at line 1."),
        ("mariadb:11", "}{ broken\n", f"\terror: Found option without preceding group in config file: {MYSQL} at line: 1"),
    ],
)  # fmt: skip
def test_file_of_mysql_without_groups_is_refused(image, text, line):
    assert problem_of_file(image, text, MYSQL)[-2] == line


def test_mongod_of_a_file_of_mongodb_2_4_is_right():
    assert (
        problem_of_file("mongo:7", "port = 27017\ndbpath = /x\n", MONGOD, "mongod", "--config", MONGOD)
        is None
    )


def test_tabs_and_comments_in_lines_are_read_as_servers_do():
    assert problem_of_file("redis:7", "maxmemory\t256mb\n", REDIS, "redis-server", REDIS) is None
    text = "[mysqld]\nskip-name-resolve  # no DNS\nmax_connections=100\t# x\nmax_connections=100#x\ninit-connect='a#b'\n"
    assert problem_of_file("mysql:8", text, MYSQL) is None


MONGOD = "/etc/mongo/mongod.conf"


@pytest.mark.parametrize(
    ("image", "line", "says"),
    [
        ("mongo:7", "  journal: {enabled: true}", "Unrecognized option: storage.journal.enabled"),
        ("mongo:7", "  directoryPerDB: maybe", "Expected boolean switch but found string: maybe for option: storage.directoryPerDB"),
        ("mongo:7", "net: {port: many}", 'Error parsing option "net.port" as int in config file: Did not consume whole string.'),
        ("mongo:7", "security:", "Unrecognized option: security"),
        ("mongo:4", "  journal: {enabled: true}", None),
        ("mongo:7", "setParameter: {any: {x: 1}}\nsystemLog: {component: {query: {verbosity: 2}}}", None),
        ("mongo:7", "\tport=1", "Error parsing YAML config file: yaml-cpp: error at line 3"),
    ],
)  # fmt: skip
def test_wrong_line_of_mongod_configuration_is_reported(image, line, says):
    text = f"storage:\n  dbPath: /data/db\n{line}\n"
    found = problem_of_file(image, text, MONGOD, "mongod", "--config", MONGOD)
    assert found == (says and (says, "try 'mongod --help' for more information"))
    assert problem_of_file(image, text, MONGOD, "mongod") is None


def test_wrong_value_of_kafka_configuration_is_reported():
    path = "/mnt/shared/config/server.properties"
    text = "# x\nprocess.roles=broker\nnum.network.threads = \\\n  many\nunknown.name=x\n"
    found = problem_of_file("apache/kafka:3.9.0", text, path)
    says = "Invalid value many for configuration num.network.threads: Not a number of type INT"
    assert found[-1] == f'Exception in thread "main" org.apache.kafka.common.config.ConfigException: {says}'
    assert problem_of_file("apache/kafka:3.9.0", text.replace("many", "8"), path) is None
    server = "/opt/kafka/bin/kafka-server-start.sh"
    lines, code = problem("apache/kafka", f"{server} /x --override auto.create.topics.enable=maybe")
    assert lines[0] == "ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)"
    assert lines[1].endswith("auto.create.topics.enable: Expected value to be either true or false")
    assert code == 1


@pytest.mark.parametrize(
    ("image", "name", "value", "last"),
    [
        ("apache/kafka:3.9.0", "KAFKA_LOG_RETENTION_HOURS", "week", "configuration log.retention.hours: Not a number of type INT"),
        ("bitnami/kafka:3.9", "KAFKA_CFG_NUM_PARTITIONS", "x", "kafka INFO  ==> Formatting storage directories to add metadata..."),
        ("bitnami/kafka:3.9", "KAFKA_NUM_PARTITIONS", "x", None),
        ("apache/kafka:3.9.0", "KAFKA_HEAP_OPTS", "-Xmx1g", None),
        ("apache/kafka:3.9.0", "KAFKA_NUM_PARTITIONS", "3", None),
    ],
)  # fmt: skip
def test_wrong_variable_of_kafka_is_reported(image, name, value, last):
    subject = {"name": "c", "image": image, "env": [{"name": name, "value": value}]}
    found = unmet_need(IMAGES, pod(subject), subject, References())
    assert found is None if last is None else found.logs[-1].endswith(last)
    assert names_options(IMAGES, subject)


def test_line_without_value_of_grafana_configuration_is_reported():
    path = "/etc/grafana/grafana.ini"
    text = '[server]\ndomain = x\n; comment\nlong = """a\nb"""\nmore = a \\\n b\n[auth]\ndisable_login\n'
    found = problem_of_file("grafana/grafana:11.0.0", text, path)
    says = f'failed to parse \\"{path}\\": key-value delimiter not found: disable_login\\n'
    assert found == (f'logger=settings level=error msg="{says}"',)
    assert problem_of_file("grafana/grafana:11.0.0", "[server\n", path) == (
        f'logger=settings level=error msg="failed to parse \\"{path}\\": unclosed section: [server"',
    )
    assert problem_of_file("grafana/grafana:11.0.0", text.replace("disable_login", "a: b"), path) is None
    assert problem_of_file("grafana/grafana:11.0.0", text, path, "--config=/etc/other.ini") is None


def test_wrong_line_of_mariadb_configuration_is_reported():
    text = "[mariadbd]\nwsrep-anything=1\nmax_connections = lots\n"
    found = problem_of_file("mariadb:11", text, MYSQL)
    unknown = "Unknown suffix 'l' used for variable 'max_connections' (value 'lots')"
    assert found[-2:] == (
        f"\t[ERROR] Buffered error: {unknown}. Legal suffix characters are: K, M, G, T, P, E",
        "[ERROR] Buffered error: mariadbd: Error while setting value 'lots' to 'max_connections'",
    )
    assert problem_of_file("mariadb:11", text.replace("lots", "1K"), MYSQL) is None
