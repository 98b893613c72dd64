"""nc, ping and the pings of databases report whether a server answers."""

from math import inf

import pytest

from mockube.container_runtime.simulated.network.calls import HttpRequest, Reply
from mockube.container_runtime.simulated.shell.process import UnknownProgram
from tests.support.shell_network import ShellNetwork, run_script


@pytest.mark.parametrize(
    ("arguments", "code", "err"),
    [
        ("-z web 80", 0, ""),
        ("-zv web 80", 0, "web (10.0.0.7:80) open\n"),
        ("-z web 82", 1, ""),
        ("-zv web 82", 1, "nc: can't connect to remote host (10.0.0.7): Connection refused\n"),
        ("-z -w 2 web 81", 1, "nc: timed out\n"),
        ("-z none 80", 1, "nc: bad address 'none'\n"),
        ("-z web 0", 1, "nc: bad port '0'\n"),
        ("-z web 82-84", 1, ""),
    ],
)
def test_nc_scans_ports(arguments, code, err):
    result = run_script(f"nc {arguments}")
    assert (result.code, result.err) == (code, err)


def test_nc_waits_for_another_datagram_until_its_limit():
    network = ShellNetwork()
    network.replies = {("10.0.0.7", 80): b"web-1"}
    result = run_script("echo hostname | nc -u -w 3 web 80", network)
    assert (result.code, result.out) == (0, "web-1")
    assert 3 <= result.seconds < 4
    assert network.calls[-1].data == b"hostname\n"


@pytest.mark.parametrize(
    ("script", "seconds"),
    [("echo hi | nc -w 3 web 80", 3), ("nc -w 3 web 80 </dev/null", 3), ("echo hi | nc -q 2 web 80", 2)],
)
def test_nc_ends_a_connection_on_which_nothing_happens_after_its_limit(script, seconds):
    network = ShellNetwork()
    network.is_silent = True
    result = run_script(script, network)
    assert (result.code, result.out) == (0, "")
    assert seconds <= result.seconds < seconds + 1


def test_nc_without_input_prints_what_the_server_sends_first():
    assert run_script("nc db.prod 6379 </dev/null").out == "+PONG\r\n"


@pytest.mark.parametrize("arguments", ["-l -p 80 -e cat", "-lu -p 80", "-l -c 'date' 80", "-l", "-l -p x"])
def test_server_of_nc_with_more_than_is_simulated_is_refused(arguments):
    with pytest.raises(UnknownProgram):
        run_script(f"nc {arguments}")


@pytest.mark.parametrize(
    ("arguments", "code", "err", "seconds"),
    [
        ("web:80", 0, "", 0),
        ("web:82", 1, "REFUSED\n", 0),
        ("web:81 --timeout=2s", 1, "TIMEOUT\n", 2),
        ("--timeout 2s web:81", 1, "TIMEOUT\n", 2),
        ("none:80", 1, "DNS: lookup none: no such host\n", 0),
        ("web", 1, "UNKNOWN: address web: missing port in address\n", 0),
        ("web:80 --protocol=udp --timeout=2s", 1, "TIMEOUT\n", 2),
        ("web:80 --protocol=udp --timeout=x", 1, 'Error: invalid argument for "--timeout" flag', 0),
        ("web:80 --protocol=x", 1, "Unsupported protocol\nx", 0),
        ("web:80 db:80", 1, "Error: accepts 1 arg(s), received 2\n", 0),
    ],
)
def test_agnhost_connect_says_why_it_cannot(arguments, code, err, seconds):
    result = run_script(f"agnhost connect {arguments}")
    assert result.code == code
    assert result.err.startswith(err)
    assert seconds <= result.seconds < seconds + 1


def test_replica_of_a_guestbook_takes_over_what_its_primary_has():
    network = ShellNetwork()
    body = b'{"data":{"a":"b c"}}'
    network.paths = {"/register?host=": Reply(outcome="open", status=200, speaks="http", body=body)}
    result = run_script("agnhost guestbook --replicaof=web --backend-port=80 --http-port=5432", network)
    assert result.seconds == inf
    assert [(call.address, call.path) for call in network.calls if isinstance(call, HttpRequest)] == [
        ("10.0.0.7", "/register?host="),
        ("127.0.0.1", "/set?key=a&value=b+c"),
    ]


def test_replica_of_a_guestbook_ends_without_its_primary():
    result = run_script("agnhost guestbook --replicaof=web --backend-port=82")
    assert (result.code, int(result.seconds)) == (1, 15)
    assert result.err.endswith("Timed out while registering to primary.\n")


def test_ping_counts_replies():
    result = run_script("ping -c 2 me")
    assert result.code == 0
    assert "2 packets transmitted, 2 packets received, 0% packet loss" in result.out
    assert 1 <= result.seconds < 2


def test_ping_without_replies_fails():
    result = run_script("ping -c 2 -W 3 web")
    assert result.code == 1
    assert "2 packets transmitted, 0 packets received, 100% packet loss" in result.out
    assert 4 <= result.seconds < 5


def test_ping_of_unknown_name_fails():
    result = run_script("ping -c 1 none")
    assert (result.code, result.err) == (1, "ping: bad address 'none'\n")


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        ("redis-cli -h db.prod ping", 0, "PONG\n"),
        (
            "redis-cli -h db.prod -p 1 ping",
            1,
            "Could not connect to Redis at db.prod:1: Connection refused\n",
        ),
        ("redis-cli -h none ping", 1, "Could not connect to Redis at none:6379: Name or service not known\n"),
        ("pg_isready", 0, "/var/run/postgresql:5432 - accepting connections\n"),
        ("pg_isready -h web", 2, "web:5432 - no response\n"),
        ("pg_isready -q -h db.prod -p 6379", 2, ""),
        ("mysqladmin -h web -psecret ping", 1, "mysqladmin: connect to server at 'web' failed\n"),
        ("mysqladmin -h web -P 80 ping", 0, "mysqld is alive\n"),
        ("mongosh --quiet --eval 'db.adminCommand(\"ping\")' web:80", 0, "{ ok: 1 }\n"),
        (
            "mongosh --eval 'db.adminCommand(\"ping\").ok' --host none",
            1,
            "MongoNetworkError: getaddrinfo ENOTFOUND none\n",
        ),
    ],
)
def test_database_ping_reports_whether_server_answers(command, code, text):
    result = run_script(command)
    assert result.code == code
    assert (result.out + result.err).startswith(text)


@pytest.mark.parametrize("command", ["redis-cli --rdb x ping", "mysqladmin shutdown", "mongosh --eval 'x'"])
def test_other_commands_of_databases_are_not_simulated(command):
    with pytest.raises(UnknownProgram):
        run_script(command)


@pytest.mark.parametrize(
    ("script", "code", "errors"),
    [
        ("(echo > /dev/tcp/web/80) && echo up", 0, ""),
        ("exec 3<>/dev/tcp/web/80; echo x >&3", 0, ""),
        ("< /dev/tcp/nosuch/80", 1, "nosuch: Name or service not known"),
        ("< /dev/tcp/web/81", 1, "connect: Connection timed out"),
    ],
)
def test_bash_opens_paths_of_tcp_as_connections(script, code, errors):
    result = run_script(f"bash -c '{script}'")
    assert result.code == code
    assert errors in result.err


def test_posix_shell_has_no_paths_of_tcp():
    result = run_script("echo > /dev/tcp/web/80")
    assert (result.code, "Directory nonexistent" in result.err) == (2, True)


def test_http_over_a_path_of_tcp_is_not_simulated():
    script = 'exec 3<>/dev/tcp/web/80; printf "GET / HTTP/1.0\\r\\n\\r\\n" >&3; cat <&3'
    with pytest.raises(UnknownProgram, match="HTTP request to /dev/tcp"):
        run_script(f"bash -c '{script}'")


def test_output_of_wget_and_curl_may_be_a_device():
    assert (
        run_script("wget -qO /dev/stdout web; curl -so /dev/stdout web; wget -qO /dev/null web").out
        == "hello\n" * 2
    )
