"""nslookup, wget, curl and the others have the messages, the exit codes and the durations of the real programs."""

import pytest

from mockube.container_runtime.simulated.network.calls import HttpRequest, Lookup, Reply
from mockube.container_runtime.simulated.shell.process import UnknownProgram
from tests.support.shell_network import ShellNetwork, run_script

# --- names


@pytest.mark.parametrize(
    ("name", "queries"),
    [
        ("web", ["web.default.svc.cluster.local"]),
        ("db.prod", ["db.prod.default.svc.cluster.local", "db.prod.svc.cluster.local"]),
        ("web.default.svc.cluster.local.", ["web.default.svc.cluster.local"]),
        ("a.b.c.d.e.f", ["a.b.c.d.e.f", "a.b.c.d.e.f.default.svc.cluster.local"]),
        ("10.0.0.7", []),
        ("other", []),
    ],
)
def test_names_are_looked_up_by_search_list(name, queries):
    network = ShellNetwork()
    run_script(f"curl -s {name}", network)
    assert [call.name for call in network.calls if isinstance(call, Lookup)][: len(queries)] == queries
    assert bool(queries) is any(isinstance(call, Lookup) for call in network.calls)


@pytest.mark.parametrize(
    "command", ["wget -qO- six", "curl -s six", "nc -z six 80", "agnhost connect six:80"]
)
def test_name_with_an_ipv6_address_alone_is_reached(command):
    network = ShellNetwork()
    assert run_script(command, network).code == 0
    types = [call.record_type for call in network.calls if isinstance(call, Lookup)]
    assert types == ["A", "AAAA"]
    assert network.calls[-1].address == "fd00:10::7"


def test_wget_names_ipv6_address_in_brackets():
    assert run_script("wget six").err.startswith("Connecting to six:80 ([fd00:10::7]:80)\n")


def test_name_outside_of_the_cluster_is_not_simulated():
    with pytest.raises(UnknownProgram, match=r"example\.com, which is outside of the cluster"):
        run_script("curl -s http://example.com/x")


def test_programs_without_a_network_are_not_simulated():
    class NoNetwork(ShellNetwork):
        def answer(self, _):
            return Reply(outcome="open", problem="it")

    with pytest.raises(UnknownProgram, match="wget: it"):
        run_script("wget web", NoNetwork())


def test_nslookup_prints_addresses_of_name():
    result = run_script("nslookup web")
    assert result.code == 0
    assert result.out == (
        "Server:\t\t10.0.0.10\nAddress:\t10.0.0.10:53\n\nName:\tweb.default.svc.cluster.local\nAddress: 10.0.0.7\n\n"
    )


def test_nslookup_of_unknown_name_fails():
    result = run_script("nslookup none")
    assert result.code == 1
    assert "** server can't find none.default.svc.cluster.local: NXDOMAIN" in result.out


def test_nslookup_without_answer_times_out():
    network = ShellNetwork()
    network.dns_outcome = "timeout"
    result = run_script("nslookup web", network)
    assert (result.code, result.out) == (1, ";; connection timed out; no servers could be reached\n")
    assert result.seconds >= 10


def test_nslookup_gives_up_after_its_timeout():
    network = ShellNetwork()
    network.dns_outcome = "timeout"
    result = run_script("nslookup -timeout=3 -retry=1 web", network)
    assert (result.code, result.out) == (1, ";; connection timed out; no servers could be reached\n")
    assert 3 <= result.seconds < 4
    assert run_script("nslookup -timeout=3 web").code == 0


@pytest.mark.parametrize(
    ("command", "code", "out"),
    [
        ("getent hosts web", 0, "10.0.0.7        web.default.svc.cluster.local\n"),
        ("getent hosts alias", 0, "10.9.9.9        alias\n"),
        ("getent hosts none", 2, ""),
        ("getent hosts six", 0, "fd00:10::7      six.default.svc.cluster.local\n"),
        ("getent ahostsv4 six", 2, ""),
        ("dig +short web.default.svc.cluster.local", 0, "10.0.0.7\n"),
        ("dig +short +search web", 0, "10.0.0.7\n"),
        ("dig +short web", 0, ""),
        ("dig +noall +answer +search +tcp web", 0, "web.default.svc.cluster.local.\t30\tIN\tA\t10.0.0.7\n"),
        ("dig +noall +answer nothing.", 0, ""),
        ("dig +short -q web.default.svc.cluster.local -t A", 0, "10.0.0.7\n"),
        ("host web", 0, "web.default.svc.cluster.local has address 10.0.0.7\n"),
        ("host none", 1, "Host none not found: 3(NXDOMAIN)\n"),
    ],
)
def test_name_is_printed(command, code, out):
    result = run_script(command)
    assert (result.code, result.out) == (code, out)


# --- wget


def test_wget_saves_file():
    result = run_script("wget web && cat index.html")
    assert (result.code, result.out) == (0, "hello\n")
    assert result.err.startswith("Connecting to web:80 (10.0.0.7:80)\nsaving to 'index.html'\n")
    assert result.err.endswith("'index.html' saved\n")


@pytest.mark.parametrize("options", ["-q -O -", "-qO-", "-q --output-document=-", "-nv -O - -T 5"])
def test_wget_writes_to_standard_output(options):
    result = run_script(f"wget {options} http://web/")
    assert (result.code, result.out, result.err) == (0, "hello\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nosuchservice:9999", "bad address 'nosuchservice:9999'"),
        ("-q nosuchservice", "bad address 'nosuchservice'"),
        ("-q web:82", "can't connect to remote host (10.0.0.7): Connection refused"),
        ("-q web:81", "can't connect to remote host (10.0.0.7): Connection timed out"),
        ("-q -T 3 web:81", "download timed out"),
        ("-q web/none", "server returned error: HTTP/1.1 404 Not Found"),
        ("-q --spider web/none", "server returned error: HTTP/1.1 404 Not Found"),
        ("-q ftp://web", "not an http or ftp url: ftp://web"),
    ],
)
def test_wget_fails_with_its_message(arguments, message):
    result = run_script(f"wget {arguments}")
    assert (result.code, result.err) == (1, f"wget: {message}\n")


def test_timeouts_take_their_time():
    assert 3 <= run_script("wget -q -T 3 web:81").seconds < 4
    assert 130 <= run_script("wget -q web:81").seconds < 131
    assert run_script("wget -q web:82").seconds < 1


def test_wget_does_not_overwrite_file():
    result = run_script("touch index.html; wget -q web")
    assert (result.code, result.err) == (1, "wget: can't open 'index.html': File exists\n")


def test_wget_tries_again():
    network = ShellNetwork()
    result = run_script("wget -q -t 3 --retry-connrefused web:82", network)
    assert result.code == 1
    assert len([call for call in network.calls if isinstance(call, HttpRequest)]) == 3


def test_wget_with_unknown_option_is_not_simulated():
    with pytest.raises(UnknownProgram, match="wget -Z"):
        run_script("wget -Z web")


# --- curl


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("none", 6, "Could not resolve host: none"),
        ("-m 3 web:81", 28, "Connection timed out after 3000 milliseconds"),
        ("--connect-timeout 2 web:81", 28, "Connection timed out after 2000 milliseconds"),
        ("-f web/none", 22, "The requested URL returned error: 404"),
        ("-sSf web/none", 22, "The requested URL returned error: 404"),
        ("https://web:80", 35, "OpenSSL/3.0.13: error:0A00010B:SSL routines::wrong version number"),
        ("--cacert /none https://web", 77, "error setting certificate file: /none"),
        ("gopher://web", 1, 'Protocol "gopher" not supported'),
        ("http://", 3, "URL rejected: Malformed input to a URL function"),
    ],
)
def test_curl_fails_with_its_code_and_message(arguments, code, message):
    result = run_script(f"curl {arguments}")
    assert (result.code, result.out, result.err) == (code, "", f"curl: ({code}) {message}\n")


def test_curl_refused_names_port():
    result = run_script("curl web:82")
    assert result.code == 7
    assert result.err.startswith("curl: (7) Failed to connect to web port 82 after ")


def test_curl_silent_prints_no_error():
    result = run_script("curl -s none")
    assert (result.code, result.err) == (6, "")


def test_curl_trusts_the_authority_that_it_gets():
    assert run_script("curl https://web").code == 60
    assert run_script("curl --cacert /other.crt https://web").code == 60
    assert run_script("curl --cacert /ca.crt https://web").out == "hello\n"
    assert run_script("curl -k https://web").out == "hello\n"


def test_curl_accepts_certificate_of_unknown_server():
    network = ShellNetwork()
    network.paths["/"] = Reply(outcome="open", status=200, is_certificate_known=False, body=b"hello\n")
    assert run_script("curl --cacert /other.crt https://web", network).out == "hello\n"


def test_curl_prints_body_of_error_without_fail():
    assert run_script("curl -s web/none").out == "none\n"
    result = run_script("curl -s --fail-with-body web/none")
    assert (result.code, result.out) == (22, "none\n")


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("%{http_code}", "404"),
        (r"%{http_code}\n", "404\n"),
        ("a%%b %{remote_ip} %{size_download}", "a%b 10.0.0.7 5"),
        ("%{exitcode} %{scheme}", "0 HTTP"),
    ],
)
def test_curl_writes_out_variables(template, text):
    assert run_script(f"curl -s -o /dev/null -w '{template}' web/none").out == text


def test_curl_writes_out_zero_without_response():
    result = run_script("curl -s -o /dev/null -w '%{http_code}' web:82")
    assert (result.code, result.out) == (7, "000")


def test_curl_with_unknown_variable_is_not_simulated():
    with pytest.raises(UnknownProgram, match="curl --write-out"):
        run_script("curl -s -w '%{certs}' web")


@pytest.mark.parametrize(
    ("arguments", "method", "body", "headers"),
    [
        ("web", "GET", b"", {"Accept": "*/*"}),
        ("-I web", "HEAD", b"", {}),
        ("-X DELETE web", "DELETE", b"", {}),
        ("-d a=b -d c=d web", "POST", b"a=b&c=d", {"Content-Type": "application/x-www-form-urlencoded"}),
        ("--json '{}' web", "POST", b"{}", {"Content-Type": "application/json"}),
        ("-H 'X-A: b' -H 'Accept:' web", "GET", b"", {"X-A": "b"}),
        ("-H 'Host: shop.example' web", "GET", b"", {"Host": "shop.example"}),
        ("-u me:secret web", "GET", b"", {"Authorization": "Basic bWU6c2VjcmV0"}),
        ("-d @- web", "POST", b"input", {}),
    ],
)
def test_curl_sends_request(arguments, method, body, headers):
    network = ShellNetwork()
    run_script(f"curl -s {arguments}", network, stdin=b"input")
    request = network.calls[-1]
    assert (request.method, request.body) == (method, body)
    assert headers.items() <= dict(request.headers).items()
    assert "-H 'Accept:'" not in arguments or "Accept" not in dict(request.headers)


def test_curl_follows_redirects():
    network = ShellNetwork()
    headers = (("Location", "/"),)
    network.paths["/old"] = Reply(outcome="open", status=301, reason="Moved Permanently", headers=headers)
    assert run_script("curl -s web/old", network).out == ""
    result = run_script("curl -sL -w '%{num_redirects} %{url_effective}' web/old", network)
    assert result.out == "hello\n1 http://web/"


def test_curl_stops_after_redirects():
    network = ShellNetwork()
    network.paths["/loop"] = Reply(outcome="open", status=302, headers=(("Location", "/loop"),))
    result = run_script("curl -sSL --max-redirs 5 web/loop", network)
    assert (result.code, result.err) == (47, "curl: (47) Maximum (5) redirects followed\n")


def test_curl_retries_with_growing_delays():
    network = ShellNetwork()
    network.paths["/busy"] = Reply(outcome="open", status=503, reason="Service Unavailable")
    result = run_script("curl -s -S -f --retry 3 web/busy", network)
    assert result.code == 22
    assert "Will retry in 1 second. 3 retries left." in result.err
    assert 7 <= result.seconds < 8
    assert len([call for call in network.calls if isinstance(call, HttpRequest)]) == 4


def test_curl_retries_refused_connection_on_demand():
    assert run_script("curl -s --retry 2 web:82").seconds < 1
    assert run_script("curl -s --retry 2 --retry-delay 5 --retry-connrefused web:82").seconds > 10


# --- clients of databases


class Database(ShellNetwork):
    """A server at db.prod:6379 that speaks a protocol, and has a password."""

    def __init__(self, speaks, password="", body=b""):
        super().__init__()
        self.speaks = {("10.0.0.8", 6379): speaks}
        self.password = password
        self.body = body

    def _open(self, call):
        reply = super()._open(call)
        login = getattr(call, "login", None)
        is_denied = login is not None and login.password != self.password
        return Reply(outcome=reply.outcome, speaks=reply.speaks, is_denied=is_denied, body=self.body)


@pytest.mark.parametrize(
    ("script", "body", "out", "data"),
    [
        ("redis-cli -h db.prod -p 6379 get 'a b'", b"$1\r\nx\r\n", "x\n", b"*2\r\n$3\r\nget\r\n$3\r\na b\r\n"),
        ("redis-cli -h db.prod get a", b"$-1\r\n", "\n", b"*2\r\n$3\r\nget\r\n$1\r\na\r\n"),
        ("redis-cli -h db.prod keys '*'", b"*2\r\n$1\r\na\r\n$1\r\nb\r\n", "a\nb\n", b"*2\r\n$4\r\nkeys\r\n$1\r\n*\r\n"),
        ("echo PING | redis-cli -h db.prod", b"+PONG\r\n", "PONG\n", b"PING\n"),
        ("redis-cli -h db.prod info", b"$10\r\n# A\r\nb:1\r\n\r\n", "# A\r\nb:1\r\n\n", b"*1\r\n$4\r\ninfo\r\n"),
        ("redis-cli -h db.prod role", b"*2\r\n:3\r\n*2\r\n$1\r\na\r\n$-1\r\n", "3\na\n\n", b"*1\r\n$4\r\nrole\r\n"),
        ("redis-cli -h db.prod incr a", b"-ERR no\r\n", "ERR no\n", b"*2\r\n$4\r\nincr\r\n$1\r\na\r\n"),
        ("redis-cli -h db.prod --no-auth-warning -a p ping", b"+OK\r\n+PONG\r\n", "PONG\n",
         b"*2\r\n$4\r\nAUTH\r\n$1\r\np\r\n*1\r\n$4\r\nping\r\n"),
    ],
)  # fmt: skip
def test_redis_cli_prints_the_replies_of_the_server(script, body, out, data):
    network = Database("redis", body=body)
    result = run_script(script, network)
    assert (result.code, result.out) == (0, out)
    assert network.calls[-1].data == data


@pytest.mark.parametrize(
    ("script", "code", "text"),
    [
        ("mysql -h none -e 'select 1'", 1, "ERROR 2005 (HY000): Unknown MySQL server host 'none' (-2)\n"),
        ("mysql -h db.prod -P 1 -e 'select 1'", 1, "ERROR 2003 (HY000): Can't connect to MySQL server on 'db.prod:1' (111)\n"),
        ("mysql -h db.prod -P 6379 -u u -pno -e 'select 1'", 1, "ERROR 1045 (28000): Access denied for user 'u'@'' (using password: YES)\n"),
        ("mysql -h db.prod -P 6379 -ppw -e 'SELECT 1;'", 0, "1\n1\n"),
        ("mysql -h db.prod -P 6379 -ppw -N -e 'SELECT 1;'", 0, "1\n"),
        ("mysql -e 'select 1'", 1, "ERROR 2002 (HY000): Can't connect to local MySQL server through socket '/var/run/mysqld/mysqld.sock' (2)\n"),
    ],
)  # fmt: skip
def test_mysql_connects_and_authenticates(script, code, text):
    result = run_script(script, Database("mysql", "pw"))
    assert (result.code, result.out + result.err) == (code, text)


@pytest.mark.parametrize(
    ("script", "code", "text"),
    [
        ("psql -h none", 2, 'psql: error: could not translate host name "none" to address: Name or service not known\n'),
        ("psql -h db.prod -p 6379", 2, 'psql: error: connection to server at "db.prod" (10.0.0.8), port 6379 failed: fe_sendauth: no password supplied\n'),
        ("PGPASSWORD=no psql -h db.prod -p 6379 -U u", 2,
         'psql: error: connection to server at "db.prod" (10.0.0.8), port 6379 failed: FATAL:  password authentication failed for user "u"\n'),
        ("PGPASSWORD=pw psql -h db.prod -p 6379 -tAc 'select 1'", 0, "1\n"),
        ("psql postgres://u:pw@db.prod:6379/x -c 'select 1'", 0, " ?column? \n----------\n        1\n(1 row)\n\n"),
        ("psql -h db.prod -p 1", 2,
         'psql: error: connection to server at "db.prod" (10.0.0.8), port 1 failed: Connection refused\n\tIs the server running on that host and accepting TCP/IP connections?\n'),
    ],
)  # fmt: skip
def test_psql_connects_and_authenticates(script, code, text):
    result = run_script(script, Database("postgres", "pw"))
    assert (result.code, result.out + result.err) == (code, text)


@pytest.mark.parametrize(
    "script", ["mysql -h db.prod -P 6379 -ppw -e 'select * from t'", "mysql -h db.prod -P 6379 -ppw"]
)
def test_sql_is_not_simulated(script):
    with pytest.raises(UnknownProgram, match="SQL of mysql"):
        run_script(script, Database("mysql", "pw"))
