"""A server of Redis gives its keys to replicas, which refuse writes and show their leader."""

import pytest

from mockube.container_runtime.simulated.servers.redis_parameters import (
    parameters_of_file,
    parameters_of_options,
    parameters_of_variables,
)
from mockube.container_runtime.simulated.servers.redis_server import RedisServer
from mockube.container_runtime.simulated.shell.network_programs.redis_protocol import (
    ErrorReply,
    encode_command,
    replies_in,
)

REFUSED = ErrorReply("READONLY You can't write against a read only replica.")


def run(server, *words, now=0.0):
    (reply,) = replies_in(server.reply(encode_command(words), "", now))
    return reply


def synchronize(leader, replica, password="", now=0.0):
    request = replica.sync_request("10.0.0.2")
    replica.synchronize(leader.reply(request, password, now), now)


@pytest.fixture
def leader():
    return RedisServer(seed="leader")


@pytest.fixture
def replica():
    return RedisServer({"replicaof": "leader 6379"}, seed="replica")


def test_replica_has_what_the_leader_has(leader, replica):
    text = "a\r\n$3\r\nä"
    for words in (("SET", "a", text), ("SET", "none", ""), ("RPUSH", "l", "x", "y"), ("HSET", "h", "f", "1")):
        run(leader, *words)
    run(leader, "SET", "b", "1", "EX", "10")
    synchronize(leader, replica)
    assert run(replica, "GET", "a") == text
    assert run(replica, "GET", "none") == ""
    assert run(replica, "LRANGE", "l", "0", "-1") == ["x", "y"]
    assert run(replica, "HGETALL", "h") == ["f", "1"]
    assert run(replica, "TTL", "b", now=4.0) == 6
    run(leader, "FLUSHALL")
    synchronize(leader, replica)
    assert run(replica, "DBSIZE") == 0


@pytest.mark.parametrize(
    "data", [b"", b"-NOAUTH Authentication required.\r\n", b"HTTP/1.1 400 Bad Request\r\n\r\n"]
)
def test_replica_keeps_what_it_had_without_its_leader(leader, replica, data):
    run(leader, "SET", "a", "1")
    synchronize(leader, replica)
    replica.synchronize(data, 0.0)
    assert run(replica, "GET", "a") == "1"
    assert run(replica, "ROLE") == ["slave", "leader", 6379, "connect", -1]
    assert "master_link_status:down" in run(replica, "INFO", "replication").split("\r\n")


def test_keys_are_not_sent_again_without_a_write(leader, replica):
    run(leader, "SET", "a", "1")
    synchronize(leader, replica)
    reply = leader.reply(replica.sync_request("10.0.0.2"), "", 0.0)
    assert reply == f"+OK\r\n+CONTINUE {leader.replication.history}\r\n".encode()
    replica.synchronize(reply, 0.0)
    assert run(replica, "GET", "a") == "1"


@pytest.mark.parametrize(
    "words",
    [
        ("SET", "a", "1"),
        ("DEL", "a"),
        ("INCR", "n"),
        ("LPUSH", "l", "x"),
        ("EXPIRE", "a", "1"),
        ("FLUSHALL",),
    ],
)
def test_replica_refuses_writes(replica, words):
    assert run(replica, *words) == REFUSED


def test_replica_with_the_parameter_accepts_writes():
    replica = RedisServer({"replicaof": "leader 6379", "replica-read-only": "no"})
    assert run(replica, "SET", "a", "1") == "OK"


def test_leader_and_replica_show_each_other(leader, replica):
    run(leader, "SET", "a", "1")
    synchronize(leader, replica)
    offset = leader.replication.offset
    assert run(leader, "ROLE") == ["master", offset, [["10.0.0.2", "6379", str(offset)]]]
    assert run(replica, "ROLE") == ["slave", "leader", 6379, "connected", offset]
    lines = run(leader, "INFO", "replication").split("\r\n")
    assert lines[:4] == [
        "# Replication",
        "role:master",
        "connected_slaves:1",
        f"slave0:ip=10.0.0.2,port=6379,state=online,offset={offset},lag=0",
    ]
    lines = run(replica, "INFO", "replication").split("\r\n")
    assert lines[:5] == [
        "# Replication",
        "role:slave",
        "master_host:leader",
        "master_port:6379",
        "master_link_status:up",
    ]


def test_replica_logs_in_with_its_password(leader):
    replica = RedisServer({"replicaof": "leader 6379", "masterauth": "p"})
    leader.reply(encode_command(["AUTH", "p"]) + encode_command(["SET", "a", "1"]), "p", 0.0)
    synchronize(leader, replica, password="p")
    assert run(replica, "GET", "a") == "1"


def test_server_follows_another_one_and_ends_it_by_command(leader):
    server = RedisServer(seed="server")
    run(leader, "SET", "a", "1")
    assert run(server, "REPLICAOF", "leader", "7000") == "OK"
    assert server.leader == ("leader", 7000)
    synchronize(leader, server)
    assert run(server, "SET", "a", "2") == REFUSED
    assert run(server, "SLAVEOF", "NO", "ONE") == "OK"
    assert run(server, "SET", "b", "2") == "OK"
    assert run(server, "GET", "a") == "1"
    assert server.replication.history != leader.replication.history


def test_leader_is_no_parameter_that_can_be_set(replica):
    assert run(replica, "CONFIG", "GET", "replicaof") == ["replicaof", "leader 6379"]
    assert run(replica, "CONFIG", "SET", "replicaof", "x 1") == ErrorReply(
        "ERR CONFIG SET failed (possibly related to argument 'replicaof') - can't set immutable config"
    )


def test_old_names_of_the_parameters_are_known():
    expected = {"replicaof": "leader 6379", "replica-read-only": "no"}
    assert parameters_of_file("slaveof leader 6379\nslave-read-only no\n") == expected
    words = ["redis-server", "--slaveof", "leader", "6379", "--slave-read-only", "no"]
    assert parameters_of_options(words) == expected


def test_variables_of_bitnami_make_a_replica():
    variables = {
        "REDIS_REPLICATION_MODE": "slave",
        "REDIS_MASTER_HOST": "leader",
        "REDIS_MASTER_PASSWORD": "p",
    }
    assert parameters_of_variables(variables) == {"replicaof": "leader 6379", "masterauth": "p"}
    assert parameters_of_variables(variables | {"REDIS_REPLICATION_MODE": "master"}) == {}
