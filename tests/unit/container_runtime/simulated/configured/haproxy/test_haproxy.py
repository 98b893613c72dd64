"""HAProxy: the alerts for its configuration in its own words, and what it answers by one. The texts are those of HAProxy 2.6."""

import pytest

from mockube.container_runtime.simulated.configured.contract import ProxyReply, Request
from mockube.container_runtime.simulated.configured.haproxy.answering import answer
from mockube.container_runtime.simulated.configured.haproxy.configuration import (
    HaproxyConfigurationError,
    configuration_of,
)

DEFAULTS = "defaults\n  mode http\n  timeout connect 5s\n  timeout client 5s\n  timeout server 5s\n"
FRONTEND = f"{DEFAULTS}frontend f\n  bind *:80\n"
BACKEND = "backend b\n  server s1 10.0.0.1:8080 check\n  server s2 10.0.0.2:8080 check\n  server s3 10.0.0.3:8080 backup\n"
ERRORS = ("Error(s) found in configuration file : h.cfg", "Fatal errors found in configuration.")


def read(text):
    return configuration_of("h.cfg", text, {"PORT": "81"}, lambda _: False)


def alerts(text):
    with pytest.raises(HaproxyConfigurationError) as error:
        read(text)
    return error.value.alerts


@pytest.mark.parametrize(
    ("text", "alert"),
    [
        (f"{FRONTEND}  bogus 1\n", "parsing [h.cfg:8] : unknown keyword 'bogus' in 'frontend' section"),
        ("global\n  foo bar\n", "parsing [h.cfg:2] : unknown keyword 'foo' in 'global' section"),
        (f"{DEFAULTS}frontend f\n  bind *\n", "parsing [h.cfg:7] : 'bind' : missing port specification in '*'"),
        (f"{DEFAULTS}frontend f\n  bind *:abc\n", "parsing [h.cfg:7] : 'bind' : invalid character 'a' in port number 'abc' in '*:abc'"),
        (f"{FRONTEND}  mode foo\n", "parsing [h.cfg:8] : unknown proxy mode 'foo'."),
        (f"{FRONTEND}  use_backend b if nosuch\n{BACKEND}", "parsing [h.cfg:8] : error detected while parsing switching rule : no such ACL : 'nosuch'."),
        (f"{FRONTEND}  http-request deny if nosuch\n", "parsing [h.cfg:8] : error detected while parsing an 'http-request deny' condition : no such ACL : 'nosuch'."),
        (f"{FRONTEND}  timeout client abc\n", "parsing [h.cfg:8] : unexpected character 'a' in 'timeout client'"),
        (f"{FRONTEND}  bind *:443 ssl crt /no.pem\n", "parsing [h.cfg:8] : 'bind *:443' in section 'frontend' : unable to stat SSL certificate from file '/no.pem' : No such file or directory."),
        (f"{FRONTEND}frontend f\n  bind *:81\n", "Parsing [h.cfg:8]: frontend 'f' has the same name as frontend 'f' declared at h.cfg:6."),
        (f"{FRONTEND}  acl x path_reg (\n", "parsing [h.cfg:8] : error detected while parsing ACL 'x' : regex '(' is invalid (error=missing closing parenthesis, erroroffset=1)."),
        (f"{FRONTEND}  http-request deny if {{ path -m reg a) }}\n", "parsing [h.cfg:8] : error detected while parsing an 'http-request deny' condition : regex 'a)' is invalid (error=unmatched closing parenthesis, erroroffset=1)."),
        (f"{FRONTEND}  http-request replace-path *a b\n", "parsing [h.cfg:8] : error detected in frontend 'f' while parsing 'http-request replace-path' rule : failed to parse the regex : regex '*a' is invalid (error=quantifier does not follow a repeatable item, erroroffset=0)."),
        (f"{DEFAULTS}backend b\n  server s1\n", "[h.cfg:7] : 'server' expects <name> and <addr>[:<port>] as arguments."),
    ],
)  # fmt: skip
def test_alerts(text, alert):
    assert alerts(text) == (alert, *ERRORS)


def test_missing_backend_and_last_line():
    assert alerts(f"{FRONTEND}  default_backend nope\n") == (
        "Proxy 'f': unable to find required default_backend: 'nope'.",
        "Fatal errors found in configuration.",
    )
    assert alerts("frontend f\n  bind *:80")[0] == (
        "parsing [h.cfg:2]: Missing LF on last line, file might have been truncated at position 12."
    )


def test_warnings_and_variables():
    subject = read('frontend f\n  mode http\n  bind "*:${PORT}"\nfrontend g\n  timeout client 1s\n')
    assert [*subject.ports] == [81]
    assert subject.warnings[0].startswith("config : frontend 'g' has no 'bind' directive.")
    assert subject.warnings[1].startswith("config : missing timeouts for frontend 'f'.")


def respond(text, target="/", replies=(), number=1, **headers):
    request = Request(method="GET", target=target, headers={"host": "h", **headers}, number=number)
    answering, calls, left = answer(read(FRONTEND + text), request, None), [], list(replies)
    try:
        calls.append(next(answering))
        while True:
            calls.append(answering.send(left.pop(0)))
    except StopIteration as stop:
        return stop.value, calls


def test_rules_of_requests():
    text = (
        "  http-request return status 201 content-type text/plain string hello if { path /r }\n"
        "  http-request deny deny_status 429 if { path_beg /d }\n"
        "  http-request redirect location /x code 301 if { path /m }\n"
        "  http-request redirect scheme https if { hdr(x-proto) -i HTTP }\n"
    )
    response, _ = respond(text, "/r")
    assert (response.status, response.content_type, response.body) == (201, "text/plain", b"hello")
    assert respond(text, "/d/e")[0].status == 429
    assert (respond(text, "/m")[0].status, respond(text, "/m")[0].location) == (301, "/x")
    assert respond(text, "/a?b=1", **{"x-proto": "http"})[0].location == "https://h/a?b=1"
    response, _ = respond(text)
    assert response.body.startswith(b"<html><body><h1>503 Service Unavailable</h1>\nNo server is available")


def test_backends_and_servers():
    text = f"  acl api hdr(host) -i api.example\n  use_backend b if api or {{ path_end .js }}\n  default_backend none\n{BACKEND}backend none\n"
    reply = ProxyReply(status=200, headers=(("Server", "nginx"),), body=b"ok")
    response, calls = respond(text, "/x", [reply], host="API.example")
    assert (response.body, response.server, calls[0].host) == (b"ok", "nginx", "10.0.0.1")
    assert respond(text, "/x.js", [reply], number=2)[1][0].host == "10.0.0.2"
    refused = ProxyReply(problem="connect() failed (111: Connection refused)")
    response, calls = respond(text, "/x.js", [refused] * 3)
    assert (response.status, [call.host for call in calls]) == (503, ["10.0.0.1", "10.0.0.2", "10.0.0.3"])
    assert respond(text, "/x.js", [ProxyReply(has_timed_out=True)])[0].status == 504
    assert respond(text, "/x")[0].status == 503


def test_log_and_headers():
    text = f"  log stdout format raw local0\n  option httplog\n  option forwardfor\n  http-response set-header X-A b\n  default_backend b\n{BACKEND}"
    response, calls = respond(text, "/", [ProxyReply(status=200, body=b"ok")])
    assert dict(calls[0].headers)["x-forwarded-for"] == "127.0.0.1"
    assert ("X-A", "b") in response.headers
    ((path, line),) = response.logs
    assert path == "/dev/stdout"
    assert line.startswith("127.0.0.1:40000 [01/Jan/1970:00:00:00.000] f b/s1 0/0/0/0/0 200 ")


def test_unknown_criteria_and_actions_are_named_as_not_simulated():
    subject = read(f"{FRONTEND}  acl a ssl_c_verify 1\n  http-request use-service lua.hello if a\n")
    assert [*subject.not_simulated] == [
        "the criterion ssl_c_verify of haproxy",
        "http-request use-service of haproxy",
    ]


def test_pattern_replaces_the_part_that_matches():
    text = f"  http-request replace-path (b)$ x\\\\1\n  http-request replace-path (a+)+c never\n  default_backend b\n{BACKEND}"
    _, calls = respond(text, "/b/b", [ProxyReply(status=200)])
    assert calls[0].path == "/b/xb"


def test_text_with_an_expression_that_is_not_closed_stays():
    response, _ = respond("  http-request redirect location /%[path]%[src if TRUE\n", "/p")
    assert response.location == "//p%[src"


def test_pattern_with_a_lookahead_is_not_simulated():
    assert read(f"{FRONTEND}  acl x path_reg (?=a)\n").not_simulated == {
        "the criterion path_reg (?=a) of haproxy": None
    }


def test_proxy_does_not_change_the_criteria_of_its_defaults():
    subject = read("defaults\n  acl x path /d\nfrontend f\n  bind *:80\n  acl x path /f\nbackend b\n")
    assert [len(subject.frontends[0].acls["x"]), len(subject.proxies["b"].acls["x"])] == [2, 1]


def test_metrics_of_the_exporter():
    rule = "  http-request use-service prometheus-exporter if { path /metrics }\n  default_backend b\n"
    assert [*read(FRONTEND + rule + BACKEND).not_simulated] == []
    response, calls = respond(rule + BACKEND, "/metrics", number=3)
    assert (response.status, response.content_type, calls) == (200, "text/plain; version=0.0.4", [])
    lines = response.body.decode().splitlines()
    assert {
        "# TYPE haproxy_frontend_http_requests_total counter",
        'haproxy_frontend_http_requests_total{proxy="f"} 3',
        'haproxy_backend_active_servers{proxy="b"} 2',
        'haproxy_server_status{proxy="b",server="s3",state="UP"} 1',
    } <= {*lines}
    assert respond(rule + BACKEND, "/other", [ProxyReply(status=200, body=b"ok")])[0].body == b"ok"
