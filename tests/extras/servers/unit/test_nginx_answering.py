"""A server of nginx answers by its configuration: servers, locations, rewrites, files, proxies, error pages and logs."""

import pytest

from mockube.container_runtime.simulated.server_contract import ProxyReply, Request
from mockube.extras.servers.nginx.answering import answer
from mockube.extras.servers.nginx.configuration import configuration_of
from mockube.extras.servers.nginx.parser import ConfigurationError, parse

FILES = {
    "/www/index.html": b"home",
    "/www/a.txt": b"text",
    "/www/404.html": b"nothing here",
    "/www/sub/b.js": b"code",
    "/docs/c.html": b"docs",
}


class Files:
    def kind(self, path):
        if path in FILES:
            return "file"
        return "folder" if any(other.startswith(f"{path.rstrip('/')}/") for other in FILES) else ""

    def read(self, path):
        if path.endswith("b.js"):
            raise PermissionError(13, "Permission denied")
        return FILES[path]

    def names(self, path):
        return sorted(
            {other.removeprefix(f"{path}/").split("/")[0] for other in FILES if other.startswith(f"{path}/")}
        )


def configuration(text, http=""):
    whole = f"events {{}} http {{ {http} server {{ root /www; {text} }} }}"
    return configuration_of(parse("/etc/nginx/nginx.conf", lambda path: [(path, whole)]))


def respond(subject, target="/", replies=(), **fields):
    """Return the response, and the requests that nginx has sent."""
    answering = answer(subject, Request(**{"method": "GET", "target": target, **fields}), Files())
    calls, replies = [], list(replies)
    try:
        calls.append(next(answering))
        while True:
            calls.append(answering.send(replies.pop(0)))
    except StopIteration as stop:
        return stop.value, calls


def ask(text, target="/", **fields):
    response, _ = respond(configuration(text), target, **fields)
    return response


@pytest.mark.parametrize(
    ("text", "target", "status", "body"),
    [
        ("", "/", 200, "home"),
        ("", "/a.txt?x=1", 200, "text"),
        ("", "/../a.txt", 400, None),
        ("", "/a%00.txt", 400, None),
        ("rewrite ^/old(.*) $1 last; location /p { return 200 $uri; }", "/old/p%2541", 200, "/p%41"),
        ("", "/sub/../a%2Etxt", 200, "text"),
        ("", "/nope", 404, None),
        ("", "/sub/", 403, None),
        ("", "/sub/b.js", 403, None),
        ("autoindex on;", "/sub/", 200, None),
        ("index a.txt;", "/", 200, "text"),
        ("location /d/ { alias /docs/; }", "/d/c.html", 200, "docs"),
        ("location = /x { return 200 exact; } location /x { return 200 prefix; }", "/x", 200, "exact"),
        ("location = /x { return 200 exact; } location /x { return 200 prefix; }", "/xy", 200, "prefix"),
        ("location /a { return 200 1; } location /ab { return 200 2; }", "/abc", 200, "2"),
        ("location /a { return 200 1; } location ~ c$ { return 200 2; }", "/abc", 200, "2"),
        ("location ^~ /a { return 200 1; } location ~ c$ { return 200 2; }", "/abc", 200, "1"),
        ("location ~* \\.TXT$ { return 200 any; }", "/a.txt", 200, "any"),
        ("location /a { location ~ (\\d+) { return 200 $1; } return 200 no; }", "/a/12", 200, "12"),
        ("location ~ ^/u/(?<name>\\w+) { return 200 $name; }", "/u/joe/x", 200, "joe"),
        ("location / { try_files $uri $uri/ /index.html; }", "/spa/route", 200, "home"),
        ("location / { try_files $uri =404; }", "/none", 404, None),
        ("location / { try_files $uri @app; } location @app { return 200 app; }", "/none", 200, "app"),
        ("rewrite ^/old/(.*)$ /$1 last;", "/old/a.txt", 200, "text"),
        ("location / { rewrite ^ /loop; }", "/", 500, None),
        ("location /b { rewrite ^/b/(.*) /$1 break; }", "/b/a.txt", 200, "text"),
        ("error_page 404 /404.html;", "/nope", 404, "nothing here"),
        ("error_page 404 =200 /404.html;", "/nope", 200, "nothing here"),
        ("error_page 404 = @a; location @a { return 201 made; }", "/nope", 201, "made"),
        ("error_page 500 /gone.html; location = /x { return 500; }", "/x", 404, None),
        ("location /i { internal; return 200 x; }", "/i", 404, None),
        ("location / { deny all; }", "/", 403, None),
        ("location / { allow 127.0.0.0/8; deny all; }", "/", 200, "home"),
        ("auth_basic realm;", "/", 401, None),
        ("location / { limit_except POST { deny all; } }", "/", 403, None),
        ("location /s { stub_status; }", "/s", 200, None),
        ("set $a x; set $b ${a}y; return 200 $b-$arg_q-$http_host;", "/?q=1", 200, "xy-1-"),
        ('if ($arg_q = 1) { return 200 one; } return 200 "other";', "/?q=1", 200, "one"),
        ('if ($arg_q = 1) { return 200 one; } return 200 "other";', "/?q=2", 200, "other"),
        ("if (!-f /www$uri) { return 410; }", "/zzz", 410, None),
        ("if ($request_uri ~ ^/(\\w)) { return 200 $1; }", "/q", 200, "q"),
        ("location ~ (?<!x)y { return 200 never; }", "/y", 404, None),
    ],
)
def test_path_is_answered_by_its_location(text, target, status, body):
    response = ask(text, target)
    assert response.status == status
    assert body is None or response.body.decode() == body


@pytest.mark.parametrize(
    ("text", "target", "status", "location"),
    [
        ("", "/sub", 301, "http://web/sub/"),
        ("listen 8080;", "/sub", 301, "http://web:8080/sub/"),
        ("return 301 https://$host$request_uri;", "/a?b=1", 301, "https://web/a?b=1"),
        ("return https://other/;", "/", 302, "https://other/"),
        ("rewrite ^/(.*)$ /new/$1 permanent;", "/a?b=1", 301, "http://web/new/a?b=1"),
        ("rewrite ^ http://other/x;", "/", 302, "http://other/x"),
        ("absolute_redirect off; return 302 /x;", "/", 302, "/x"),
    ],
)  # fmt: skip
def test_redirect_has_the_address_of_the_server(text, target, status, location):
    response = ask(text, target, headers={"host": "web"}, port=8080 if "8080" in text else 80)
    assert (response.status, response.location) == (status, location)


@pytest.mark.parametrize(
    ("host", "body"),
    [
        ("a.com", "a"),
        ("x.b.com", "wildcard"),
        ("b.com:80", "default"),
        ("c.org", "c"),
        ("r12.net", "pattern"),
        ("", "default"),
    ],
)
def test_server_is_found_by_its_name(host, body):
    servers = """
        server { listen 80; server_name a.com; return 200 a; }
        server { listen 80 default_server; server_name _; return 200 default; }
        server { listen 80; server_name *.b.com; return 200 wildcard; }
        server { listen 80; server_name .c.org; return 200 c; }
        server { listen 80; server_name ~^r\\d+; return 200 pattern; }
    """
    subject = configuration("listen 81;", servers)
    assert respond(subject, headers={"host": host})[0].body.decode() == body


def test_map_looks_a_value_up():
    maps = 'map $http_user_agent $kind { default other; curl exact; "~^Moz" browser; }'
    subject = configuration("return 200 $kind;", maps)
    agents = {"curl": "exact", "Mozilla/5": "browser", "wget": "other"}
    for agent, kind in agents.items():
        assert respond(subject, headers={"user-agent": agent})[0].body.decode() == kind


# --- proxies


@pytest.mark.parametrize(
    ("location", "target", "path"),
    [
        ("location /api { proxy_pass http://web; }", "/api/x?a=1", "/api/x?a=1"),
        ("location /api/ { proxy_pass http://web/; }", "/api/x?a=1", "/x?a=1"),
        ("location /api { proxy_pass http://web/v1; }", "/api/x", "/v1/x"),
        ("location ~ ^/n/(.*) { proxy_pass http://web; }", "/n/x", "/n/x"),
        ("location /r { rewrite ^/r/(.*) /$1 break; proxy_pass http://web; }", "/r/x?a=1", "/x?a=1"),
        ("location /v { set $to web; proxy_pass http://$to/fixed; }", "/v/x", "/fixed"),
    ],
)
def test_proxy_sends_the_path_that_its_location_says(location, target, path):
    _, (call,) = respond(configuration(location), target, [ProxyReply(status=200)])
    assert (call.host, call.port, call.path) == ("web", 80, path)


def test_proxy_passes_headers():
    text = "location / { proxy_set_header Host $host; proxy_set_header X-Real-IP $remote_addr; proxy_set_header Accept ''; proxy_pass http://web:81; }"
    headers = {"host": "shop.com:80", "accept": "*/*", "x-a": "1", "connection": "keep-alive"}
    reply = ProxyReply(
        status=201, headers=(("Server", "x"), ("Content-Type", "a/b"), ("X-B", "2")), body=b"made"
    )
    response, (call,) = respond(configuration(text), "/", [reply], headers=headers, client="10.0.0.9")
    sent = dict(call.headers)
    assert (call.port, sent["Host"], sent["X-Real-IP"], sent["X-A"], "Accept" in sent) == (
        81,
        "shop.com",
        "10.0.0.9",
        "1",
        False,
    )
    assert (response.status, response.content_type, response.headers, response.body) == (
        201,
        "a/b",
        [("X-B", "2")],
        b"made",
    )


def test_failed_proxy_is_a_bad_gateway_and_logged():
    problem = "connect() failed (111: Connection refused) while connecting to upstream"
    reply = ProxyReply(problem=problem, body=b"10.0.0.1")
    response, _ = respond(
        configuration("location / { proxy_pass http://web; }"), "/x", [reply], headers={"host": "h"}
    )
    assert response.status == 502
    assert response.errors == [
        f'1970/01/01 00:00:00 [error] 29#29: *1 {problem}, client: 127.0.0.1, server: , request: "GET /x HTTP/1.1", upstream: "http://10.0.0.1:80/x", host: "h"'
    ]


def test_upstream_that_fails_is_followed_by_the_next_one():
    upstream = "upstream u { server a; server b:81; server c backup; server d down; }"
    subject = configuration("location / { proxy_pass http://u; }", upstream)
    failed = ProxyReply(problem="connect() failed", has_timed_out=True)
    response, calls = respond(subject, "/", [failed, failed, ProxyReply(status=200)], number=2)
    assert [call.host for call in calls] == ["a", "b", "c"]
    assert response.status == 200
    response, calls = respond(subject, "/", [failed] * 3, number=1)
    assert ([call.host for call in calls], response.status) == (["b", "a", "c"], 504)
    assert [host.host for host in subject.hosts] == ["a", "b", "c", "d"]


def test_error_page_replaces_a_failed_proxy():
    text = "error_page 502 /404.html; location /p { proxy_pass http://web; }"
    response, _ = respond(configuration(text), "/p", [ProxyReply(problem="refused")])
    assert (response.status, response.body) == (502, b"nothing here")


def test_large_body_is_refused():
    response, calls = respond(
        configuration("client_max_body_size 1k; location / { proxy_pass http://web; }"), body=b"x" * 1025
    )
    assert (response.status, calls) == (413, [])


# --- logs and headers


def test_request_is_logged_in_the_format_of_the_server():
    formats = "log_format short '$remote_addr $request_method $uri $status $body_bytes_sent';"
    subject = configuration("access_log /l short; location /q { access_log off; }", formats)
    assert respond(subject, "/a.txt")[0].logs == [("/l", "127.0.0.1 GET /a.txt 200 4")]
    assert respond(subject, "/q")[0].logs == []


def test_headers_are_added_by_status():
    text = "add_header X-A 1; add_header X-B 2 always;"
    assert ("X-A", "1") in ask(text, "/a.txt").headers
    missing = ask(text, "/nope").headers
    assert ("X-A", "1") not in missing
    assert ("X-B", "2") in missing


def test_default_type_is_that_of_files_without_another():
    subject = configuration("", "types { text/x-own txt; } default_type a/b; charset utf-8;")
    assert respond(subject, "/a.txt")[0].content_type == "text/x-own; charset=utf-8"
    assert respond(subject, "/index.html")[0].content_type == "a/b"


@pytest.mark.parametrize(
    ("text", "http", "message"),
    [
        ("listen 0;", "", 'invalid port in "0" of the "listen" directive'),
        ("listen 80 foo;", "", 'invalid parameter "foo"'),
        ("location / { proxy_pass web; }", "", "invalid URL prefix"),
        ("location ~ x { proxy_pass http://web/y; }", "", '"proxy_pass" cannot have URI part in location given by regular expression'),
        ("location / {} location / {}", "", 'duplicate location "/"'),
        ("return x;", "", 'invalid return code "x"'),
        ("rewrite a b maybe;", "", 'invalid parameter "maybe"'),
        ("location ~ ^/(a { }", "", 'pcre2_compile() failed: missing closing parenthesis in "^/(a"'),
        ("listen 443 ssl;", "", 'no "ssl_certificate" is defined for the "listen ... ssl" directive'),
        ("", "upstream u {}", "no servers are inside upstream"),
        ("", "upstream u { server a x; }", 'invalid parameter "x"'),
        ("", "upstream u { server a; } upstream u { server b; }", 'duplicate upstream "u"'),
        ("set a b;", "", 'invalid variable name "a"'),
        ("if (a b) {}", "", 'unexpected "b" in condition'),
    ],
)  # fmt: skip
def test_invalid_value_fails_in_the_words_of_nginx(text, http, message):
    with pytest.raises(ConfigurationError) as caught:
        configuration(text, http)
    assert str(caught.value).startswith(message)
    assert str(caught.value).endswith(" in /etc/nginx/nginx.conf:1")


def test_configuration_needs_events():
    with pytest.raises(ConfigurationError, match='no "events" section in configuration'):
        configuration_of(parse("/f", lambda path: [(path, "http {}")]))


def test_directives_that_change_answers_are_named():
    subject = configuration(
        "location / { fastcgi_pass php:9000; auth_request off; } limit_req zone=a;",
        "proxy_cache_path /c keys_zone=a:1m;",
    )
    assert subject.not_simulated == ("proxy_cache_path", "limit_req", "fastcgi_pass")


def test_values_do_not_grow_without_bound():
    text = "set $a x; " + "set $a $a$a$a$a;" * 40 + "return 200 $a;"
    assert len(ask(text).body) <= 1 << 16
