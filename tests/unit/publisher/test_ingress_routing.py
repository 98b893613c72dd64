"""What becomes of requests by the rules of Ingresses."""

import pytest
from msgspec import structs

from mockube.client.resources import Key
from mockube.network.ingress import NGINX, TRAEFIK
from mockube.publisher.http_routing import FixedAnswer, Forward, ProxiedRequest
from mockube.publisher.ingress_routing import IngressRouter, IngressTable, unknown_annotations


def ingress(name, *paths, host="", created="2026-01-01T00:00:00Z", **annotations):
    entries = [
        {"path": path, "pathType": kind, "backend": {"service": {"name": service, "port": {"number": 80}}}}
        for path, kind, service in paths
    ]
    rule = ({"host": host} if host else {}) | {"http": {"paths": entries}}
    names = {
        f"nginx.ingress.kubernetes.io/{key.replace('_', '-')}": value for key, value in annotations.items()
    }
    metadata = {"name": name, "namespace": "default", "creationTimestamp": created, "annotations": names}
    return {"metadata": metadata, "spec": {"rules": [rule]}}


def router(*ingresses, controller=NGINX, secure_hosts=(), https_port=443, number=0):
    table = IngressTable()
    for each in ingresses:
        table.put(Key.of(each), each)
    return IngressRouter(
        {controller: table}, lambda host: host in secure_hosts, lambda: https_port, lambda _: number
    )


def request(target="/", host="a.example", *, uses_tls=False, client="127.0.0.1", **headers):
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return ProxiedRequest(
        method="GET",
        target=target,
        host=host,
        headers={"host": host, **names},
        uses_tls=uses_tls,
        client=client,
        port=80,
    )


def backend(decision):
    return decision.backend[1] if isinstance(decision, Forward) else decision.status


def test_host_with_rules_gets_none_of_others_but_with_traefik():
    own = ingress("own", ("/own", "Prefix", "own"), host="a.example")
    shared = ingress("shared", ("/", "Prefix", "shared"))
    assert backend(router(own, shared).decide(request("/x"))) == 404
    assert backend(router(own, shared).decide(request("/x", "b.example"))) == "shared"
    assert backend(router(own, shared, controller=TRAEFIK).decide(request("/x"))) == "shared"


@pytest.mark.parametrize(
    ("target", "expected"),
    [("/foo", "prefix"), ("/foo/", "prefix"), ("/foobar", 404), ("/spec", "spec"), ("/special", "spec")],
)
def test_prefix_ends_at_slash_but_implementation_specific_does_not(target, expected):
    paths = ("/foo", "Prefix", "prefix"), ("/spec", "ImplementationSpecific", "spec")
    assert backend(router(ingress("i", *paths, host="a.example")).decide(request(target))) == expected


@pytest.mark.parametrize(
    ("path", "target", "requested", "expected"),
    [
        ("/api(/|$)(.*)", "/$2", "/api/v1/x?q=1", "/v1/x?q=1"),
        ("/api(/|$)(.*)", "/$2", "/api", "/"),
        ("/api(/|$)(.*)", "/$2", "/API/x", "/x"),
        ("/something", "/", "/something/else", "/"),
        ("/a/(.*)", "/b/$1/$9/$x", "/a/c", "/b/c//$x"),
    ],
)
def test_path_is_rewritten_with_groups(path, target, requested, expected):
    found = router(
        ingress("i", (path, "ImplementationSpecific", "s"), host="a.example", rewrite_target=target)
    )
    assert found.decide(request(requested)).target == expected


def test_invalid_or_expensive_pattern_matches_nothing():
    for path in ("/(", "/(a{1000}){1000}"):
        found = router(
            ingress("i", (path, "ImplementationSpecific", "s"), host="a.example", use_regex="true")
        )
        assert backend(found.decide(request("/a"))) == 404


def test_oldest_ingress_is_served_and_newer_one_is_duplicate():
    old = ingress("z", ("/", "Prefix", "old"), host="a.example")
    new = ingress("a", ("/", "Prefix", "new"), host="a.example", created="2026-02-01T00:00:00Z")
    table = IngressTable()
    table.put(Key.of(new), new)
    table.put(Key.of(old), old)
    assert [rule.backend[1] for rule in table.duplicates(new)] == ["old"]
    assert not [*table.duplicates(old)]
    assert backend(router(new, old).decide(request())) == "old"
    table.put(Key.of(old), None)
    assert not [*table.duplicates(new)]
    table.put(Key.of(new), None)
    assert not len(table)
    assert table.of_host("a.example") == ()


@pytest.mark.parametrize(
    ("created", "served"), [("2026-01-01T00:00:00Z", "b"), ("2026-01-01T00:00:01Z", "a")]
)
def test_of_two_ingresses_of_one_second_the_last_by_name_is_served(created, served):
    first = ingress("a", ("/", "Prefix", "a"), host="a.example")
    second = ingress("b", ("/", "Prefix", "b"), host="a.example", created=created)
    assert backend(router(first, second).decide(request())) == served
    table = IngressTable()
    for tree in (first, second):
        table.put(Key.of(tree), tree)
    winner, loser = (first, second) if served == "a" else (second, first)
    assert [rule.backend[1] for rule in table.duplicates(loser)] == [served]
    assert [(key.name, rule.backend[1]) for key, rule in table.replaced(winner)] == [
        (loser["metadata"]["name"], served)
    ]
    assert not [*table.duplicates(winner)]
    assert not [*table.replaced(loser)]


def test_host_with_certificate_is_redirected_to_tls():
    plain = ingress("i", ("/", "Prefix", "s"), host="a.example")
    off = ingress("i", ("/", "Prefix", "s"), host="a.example", ssl_redirect="false")
    forced = ingress("i", ("/", "Prefix", "s"), host="a.example", force_ssl_redirect="true")
    redirected = router(plain, secure_hosts=["a.example"], https_port=8443).decide(request("/x?y=1"))
    assert (redirected.status, dict(redirected.headers)["Location"]) == (308, "https://a.example:8443/x?y=1")
    assert dict(router(forced).decide(request("/")).headers)["Location"] == "https://a.example/"
    for found in (
        router(plain).decide(request()),
        router(off, secure_hosts=["a.example"]).decide(request()),
        router(plain, secure_hosts=["a.example"]).decide(request(uses_tls=True)),
    ):
        assert backend(found) == "s"


@pytest.mark.parametrize(
    ("annotations", "status", "location"),
    [
        ({"app_root": "/app"}, 302, "http://a.example/app"),
        ({"permanent_redirect": "https://b.example"}, 301, "https://b.example"),
        (
            {"permanent_redirect": "https://b.example", "permanent_redirect_code": "308"},
            308,
            "https://b.example",
        ),
        ({"temporal_redirect": "https://b.example"}, 302, "https://b.example"),
    ],
)
def test_redirects(annotations, status, location):
    found = router(ingress("i", ("/", "Prefix", "s"), host="a.example", **annotations)).decide(request())
    assert (found.status, dict(found.headers)["Location"]) == (status, location)


def test_location_with_line_break_is_refused():
    found = router(
        ingress("i", ("/", "Prefix", "s"), host="a.example", permanent_redirect="/a\r\nSet-Cookie: b")
    )
    assert found.decide(request()).status == 400


@pytest.mark.parametrize("name", ["auth-url", "auth-type", "auth-tls-secret", "enable-modsecurity"])
def test_annotation_that_keeps_clients_out_is_refused_by_name(name):
    found = router(ingress("i", ("/", "Prefix", "s"), host="a.example", **{name: "x"})).decide(request())
    assert (found.status, found.body.decode()) == (
        503,
        f"mockube: the annotation nginx.ingress.kubernetes.io/{name} is not simulated\n",
    )


def test_source_ranges_keep_clients_out():
    only = ingress(
        "i", ("/", "Prefix", "s"), host="a.example", whitelist_source_range="10.0.0.0/8, 192.0.2.1"
    )
    assert router(only).decide(request()).status == 403
    assert backend(router(only).decide(request(client="192.0.2.1"))) == "s"
    denied = ingress("i", ("/", "Prefix", "s"), host="a.example", denylist_source_range="127.0.0.0/8")
    assert router(denied).decide(request()).status == 403


def test_backend_protocol_and_host_of_backend():
    tls = ingress("i", ("/", "Prefix", "s"), host="a.example", backend_protocol="HTTPS", upstream_vhost="b")
    found = router(tls).decide(request(uses_tls=True))
    assert (found.uses_tls, found.host) == (True, "b")
    assert dict(found.headers)["X-Forwarded-Proto"] == "https"
    grpc = ingress("i", ("/", "Prefix", "s"), host="a.example", backend_protocol="GRPC")
    assert router(grpc).decide(request()).status == 503


@pytest.mark.parametrize(
    ("annotations", "headers", "number", "expected"),
    [
        ({"canary_weight": "20"}, {}, 19, "canary"),
        ({"canary_weight": "20"}, {}, 20, "main"),
        ({"canary_by_header": "X-Canary"}, {"x_canary": "always"}, 99, "canary"),
        ({"canary_by_header": "X-Canary", "canary_weight": "100"}, {"x_canary": "never"}, 0, "main"),
        ({"canary_by_header": "X-Canary", "canary_by_header_value": "v"}, {"x_canary": "v"}, 0, "canary"),
        ({"canary_by_header": "X-Canary", "canary_by_header_value": "v"}, {"x_canary": "w"}, 0, "main"),
        ({"canary_by_cookie": "c"}, {"cookie": "a=b; c=always"}, 0, "canary"),
    ],
)
def test_canary_gets_its_part(annotations, headers, number, expected):
    main = ingress("main", ("/", "Prefix", "main"), host="a.example")
    canary = ingress("canary", ("/", "Prefix", "canary"), host="a.example", canary="true", **annotations)
    assert backend(router(canary, main, number=number).decide(request(**headers))) == expected


@pytest.mark.parametrize(("text", "size"), [("", 1 << 20), ("8m", 8 << 20), ("0", 0), ("64k", 64 << 10)])
def test_body_is_limited_as_by_nginx(text, size):
    found = ingress(
        "i", ("/", "Prefix", "s"), host="a.example", **({"proxy_body_size": text} if text else {})
    )
    assert router(found).decide(request()).max_body == size


def test_unknown_annotations_are_listed():
    tree = ingress("i", rewrite_target="/", proxy_buffering="on", server_snippet="x", limit_rps="5")
    assert unknown_annotations(tree) == ["limit-rps", "server-snippet"]
    assert unknown_annotations(ingress("i", backend_protocol="grpc")) == ["backend-protocol: GRPC"]
    assert unknown_annotations(ingress("i", backend_protocol="https")) == []


def test_request_without_rule_gets_page_of_controller():
    missing = router().decide(request())
    assert isinstance(missing, FixedAnswer)
    assert b"<center>nginx</center>" in missing.body
    assert router(controller=TRAEFIK).decide(request()).body == b"404 page not found\n"


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/public/a", ("public", "/public/a")),
        ("/public/../admin/2", 404),
        ("/public/%2e%2e/admin/2", 404),
        ("/public/..%2fadmin/2", 404),
        ("/public/..\\admin/2", ("public", "/public/..\\admin/2")),
        ("/admin/..//public/a?b=/../c", ("public", "/admin/..//public/a?b=/../c")),
        ("/public%2f..%2fapi%2fx%20y?q", ("api", "/x%20y?q")),
        ("/api/a%0d%0aX:%20b", ("api", "/a%0D")),
        ("/api/a%3fb%23", ("api", "/a%3Fb%23")),
        ("/api/x%e9y", ("api", "/x%E9y")),
        ("/api/%ff%c3%a9%fe", ("api", "/%FF%C3%A9%FE")),
        ("/api/\udce9", ("api", "/%E9")),
        ("/api/a%5cb%2fc", ("api", "/a%5Cb/c")),
        ("/public/a%5Cb%2Fc%e9", ("public", "/public/a%5Cb%2Fc%e9")),
        ("/../public", 400),
        ("/public/%00", 400),
    ],
)
def test_path_is_normalised_by_nginx_before_rules_are_matched(target, expected):
    public = ingress("p", ("/public", "Prefix", "public"), host="b.example")
    api = ingress("q", ("/api/(.*)", "ImplementationSpecific", "api"), host="c.example", rewrite_target="/$1")
    found = [router(public, api).decide(request(target, host)) for host in ("b.example", "c.example")]
    forwarded = [(backend(each), each.target) for each in found if isinstance(each, Forward)]
    assert (forwarded[0] if forwarded else found[0].status) == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/public/../admin", 404),
        ("/public/%2e%2e/admin", 404),
        ("/admin/..//public/./a%41?b=/../c", "/public/aA?b=/../c"),
        ("/public/..%2fadmin", "/public/..%2Fadmin"),
    ],
)
def test_path_is_normalised_by_traefik_for_rules_and_backends(target, expected):
    rules = ingress("p", ("/public", "Prefix", "public"), host="a.example")
    found = router(rules, controller=TRAEFIK).decide(request(target))
    assert (found.target if isinstance(found, Forward) else found.status) == expected


def test_headers_whose_names_a_backend_may_read_as_others_go_no_further_with_nginx():
    rules = ingress("p", ("/", "Prefix", "public"), host="a.example")
    names = {"host": "a.example", "x_forwarded_for": "1", "x.y": "2", "x-z": "3"}
    decided = router(rules).decide(structs.replace(request("/"), headers=names))
    dropped = [name for name, value in decided.headers if not value]
    assert dropped == ["X-Original-Forwarded-For", "Proxy", "x_forwarded_for", "x.y"]


@pytest.mark.parametrize(
    ("path", "annotations", "header"),
    [
        ("/a(/|$)(.*)", {"x_forwarded_prefix": "/a", "rewrite_target": "/$2", "use_regex": "true"}, "/a"),
        ("/a", {"x_forwarded_prefix": "/a"}, None),
        ("/a(/|$)(.*)", {"rewrite_target": "/$2", "use_regex": "true"}, None),
    ],
)
def test_prefix_is_forwarded_with_rewritten_paths_only(path, annotations, header):
    kind = "ImplementationSpecific" if "(" in path else "Prefix"
    found = router(ingress("i", (path, kind, "s"), host="a.example", **annotations)).decide(request("/a/b"))
    assert dict(found.headers).get("X-Forwarded-Prefix") == header


KNOWN = [
    "allowlist-source-range",
    "app-root",
    "backend-protocol",
    "canary",
    "canary-by-cookie",
    "canary-by-header",
    "canary-by-header-pattern",
    "canary-by-header-value",
    "canary-weight",
    "canary-weight-total",
    "denylist-source-range",
    "force-ssl-redirect",
    "permanent-redirect",
    "permanent-redirect-code",
    "preserve-trailing-slash",
    "proxy-body-size",
    "proxy-read-timeout",
    "rewrite-target",
    "ssl-redirect",
    "temporal-redirect",
    "temporal-redirect-code",
    "upstream-vhost",
    "use-regex",
    "whitelist-source-range",
    "x-forwarded-prefix",
    "client-body-buffer-size",
    "connection-proxy-header",
    "custom-http-errors",
    "enable-access-log",
    "enable-opentelemetry",
    "enable-rewrite-log",
    "http2-push-preload",
    "load-balance",
    "proxy-buffer-size",
    "proxy-buffering",
    "proxy-buffers-number",
    "proxy-busy-buffers-size",
    "proxy-connect-timeout",
    "proxy-http-version",
    "proxy-max-temp-file-size",
    "proxy-next-upstream",
    "proxy-next-upstream-timeout",
    "proxy-next-upstream-tries",
    "proxy-redirect-from",
    "proxy-redirect-to",
    "proxy-request-buffering",
    "proxy-send-timeout",
    "proxy-ssl-name",
    "proxy-ssl-secret",
    "proxy-ssl-server-name",
    "proxy-ssl-verify",
    "service-upstream",
    "ssl-ciphers",
    "ssl-prefer-server-ciphers",
    "upstream-hash-by",
    "websocket-services",
]


@pytest.mark.parametrize("name", KNOWN)
def test_annotation_with_its_effect_or_without_a_visible_one_is_not_reported(name):
    assert unknown_annotations(ingress("i", **{name: "http"})) == []


def test_errors_of_traefik_have_its_texts():
    texts = {status: router(controller=TRAEFIK).error_body(status) for status in (404, 502, 503, 504, 500)}
    assert texts == {
        404: b"404 page not found\n",
        502: b"Bad Gateway",
        503: b"no available server\n",
        504: b"Gateway Timeout",
        500: b"",
    }


def own(**annotations):
    return ingress("i", ("/", "Prefix", "s"), host="a.example", **annotations)


def test_annotations_of_others_have_no_effect():
    tree = own()
    tree["metadata"]["annotations"] = {"app-root": "/app", "example.org/server-snippet": "x"}
    assert backend(router(tree).decide(request())) == "s"
    assert unknown_annotations(tree) == []


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (400, "Bad Request"),
        (403, "Forbidden"),
        (404, "Not Found"),
        (413, "Request Entity Too Large"),
        (502, "Bad Gateway"),
        (503, "Service Temporarily Unavailable"),
        (504, "Gateway Time-out"),
        (418, "Error"),
    ],
)
def test_errors_of_nginx_have_its_pages(status, reason):
    page = router().error_body(status).decode()
    assert page.startswith(f"<html>\r\n<head><title>{status} {reason}</title></head>\r\n")
    assert page.endswith("<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n")


def test_pages_have_the_type_of_their_controller():
    for controller, kind in ((NGINX, "text/html"), (TRAEFIK, "text/plain; charset=utf-8")):
        assert router(controller=controller).decide(request()).headers == [("Content-Type", kind)]
    nobody = IngressRouter({}, lambda _: False, lambda: 443, lambda _: 0)
    assert b"nginx" in nobody.error_body(404)
    assert nobody.decide(request()).status == 404


def test_first_controller_with_a_rule_decides():
    tables = {name: IngressTable() for name in (NGINX, TRAEFIK)}
    of_nginx, of_traefik = own(), ingress("t", ("/t", "Prefix", "t"), host="b.example")
    tables[NGINX].put(Key.of(of_nginx), of_nginx)
    tables[TRAEFIK].put(Key.of(of_traefik), of_traefik)
    both = IngressRouter(tables, lambda _: False, lambda: 443, lambda _: 0)
    assert [backend(both.decide(request("/t", host))) for host in ("a.example", "b.example")] == ["s", "t"]


def test_request_to_a_backend_says_where_it_comes_from():
    forwarded = dict(router(own()).decide(request(uses_tls=True, client="192.0.2.7")).headers)
    assert forwarded == {
        "X-Real-IP": "192.0.2.7",
        "X-Forwarded-For": "192.0.2.7",
        "X-Original-Forwarded-For": "",
        "X-Forwarded-Host": "a.example",
        "X-Forwarded-Port": "80",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Scheme": "https",
        "X-Scheme": "https",
        "Proxy": "",
    }
    plain = dict(router(own(), controller=TRAEFIK).decide(request()).headers)
    assert (plain["X-Forwarded-Proto"], plain["X-Scheme"]) == ("http", "http")


@pytest.mark.parametrize(
    ("annotations", "client", "expected"),
    [
        ({"allowlist_source_range": "10.0.0.0/8"}, "10.0.0.1", "s"),
        ({"allowlist_source_range": "10.0.0.0/8"}, "11.0.0.1", 403),
        ({"denylist_source_range": "10.0.0.0/8"}, "11.0.0.1", "s"),
        ({"denylist_source_range": "10.0.0.0/8,11.0.0.0/8"}, "11.0.0.1", 403),
        ({"allowlist_source_range": "10.0.0.0/8", "denylist_source_range": "10.0.0.1"}, "10.0.0.1", 403),
        ({"allowlist_source_range": "10.0.0.0/8", "denylist_source_range": "10.0.0.1"}, "10.0.0.2", "s"),
    ],
)
def test_ranges_of_sources_admit_and_refuse(annotations, client, expected):
    assert backend(router(own(**annotations)).decide(request(client=client))) == expected


@pytest.mark.parametrize("name", ["enable-global-auth", "satisfy", "auth-realm"])
def test_further_annotations_that_keep_clients_out_are_refused(name):
    assert router(own(**{name: "x"})).decide(request()).status == 503


@pytest.mark.parametrize(
    ("annotations", "target", "fields", "status", "location"),
    [
        ({"app_root": "/app"}, "/", {"uses_tls": True}, 302, "https://a.example/app"),
        ({"app_root": "/app"}, "/x", {}, "s", None),
        ({"temporal_redirect": "/b", "temporal_redirect_code": "307"}, "/", {}, 307, "/b"),
        ({"temporal_redirect": "/b", "temporal_redirect_code": "200"}, "/", {}, 302, "/b"),
        ({"permanent_redirect": "/b", "permanent_redirect_code": "400"}, "/", {}, 301, "/b"),
        ({"permanent_redirect": "/b", "permanent_redirect_code": "300"}, "/", {}, 300, "/b"),
        ({"permanent_redirect": "/b", "temporal_redirect": "/c"}, "/", {}, 301, "/b"),
        ({"permanent_redirect": "/b", "app_root": "/c"}, "/", {}, 302, "http://a.example/c"),
        ({"force_ssl_redirect": "false"}, "/", {}, "s", None),
        ({"force_ssl_redirect": "true", "ssl_redirect": "false"}, "/x", {}, 308, "https://a.example/x"),
        ({"force_ssl_redirect": "true"}, "/", {"uses_tls": True}, "s", None),
        ({"force_ssl_redirect": "true"}, "/", {"x_forwarded_proto": "http"}, 308, "https://a.example/"),
        ({"force_ssl_redirect": "true"}, "/", {"x_forwarded_proto": "https"}, 308, "https://a.example/"),
        ({"app_root": "/a\tb"}, "/", {}, 400, None),
    ],
)
def test_redirects_of_nginx(annotations, target, fields, status, location):
    found = router(own(**annotations)).decide(request(target, **fields))
    assert (backend(found), dict(found.headers).get("Location")) == (status, location)


def test_redirection_is_html():
    found = router(own(permanent_redirect="/b")).decide(request())
    assert dict(found.headers)["Content-Type"] == "text/html"


@pytest.mark.parametrize(("text", "seconds"), [("", 60), ("5", 5), ("x", 60), ("0", 60)])
def test_backend_may_take_the_time_of_the_annotation(text, seconds):
    assert router(own(proxy_read_timeout=text)).decide(request()).seconds == seconds


@pytest.mark.parametrize(
    ("text", "size"),
    [("2g", 2 << 30), ("7", 7), ("7K", 7 << 10), (" 1m ", 1 << 20), ("x", 1 << 20), ("k", 1 << 20)],
)
def test_sizes_have_units_of_nginx(text, size):
    assert router(own(proxy_body_size=text)).decide(request()).max_body == size


@pytest.mark.parametrize(
    ("annotations", "headers", "number", "expected"),
    [
        ({}, {}, 0, "main"),
        ({"canary_weight": "1"}, {}, 0, "canary"),
        ({"canary_weight": "5", "canary_weight_total": "10"}, {}, 5, "main"),
        ({"canary_weight": "x"}, {}, 0, "main"),
        ({"canary_by_header": "X-C"}, {}, 0, "main"),
        ({"canary_by_header": "X-C"}, {"x_c": "other"}, 0, "main"),
        ({"canary_by_header": "X-C", "canary_weight": "1"}, {"x_c": "other"}, 0, "canary"),
        ({"canary_by_header": "X-C", "canary_by_header_value": "v"}, {"x_c": "always"}, 0, "main"),
        (
            {"canary_by_header": "X-C", "canary_by_header_value": "v", "canary_weight": "1"},
            {"x_c": "never"},
            0,
            "canary",
        ),
        (
            {"canary_by_header": "X-C", "canary_by_cookie": "c"},
            {"x_c": "never", "cookie": "c=always"},
            0,
            "main",
        ),
        ({"canary_by_header": "X-C", "canary_by_cookie": "c"}, {"cookie": "c=always"}, 0, "canary"),
        ({"canary_by_cookie": "c", "canary_weight": "1"}, {"cookie": "c=never"}, 0, "main"),
        ({"canary_by_cookie": "c", "canary_weight": "1"}, {"cookie": "c=maybe"}, 0, "canary"),
        ({"canary_by_cookie": "c"}, {"cookie": "d=always"}, 0, "main"),
    ],
)
def test_canary_is_chosen_by_header_cookie_and_weight(annotations, headers, number, expected):
    main = ingress("main", ("/", "Prefix", "main"), host="a.example")
    canary = ingress("canary", ("/", "Prefix", "canary"), host="a.example", canary="true", **annotations)
    assert backend(router(canary, main, number=number).decide(request(**headers))) == expected


def test_canary_has_the_path_of_its_main_ingress_and_is_no_duplicate():
    main = ingress("main", ("/", "Prefix", "main"), ("/b", "Prefix", "other"), host="a.example")
    canary = ingress(
        "canary", ("/", "Prefix", "canary"), host="a.example", canary="true", canary_weight="100"
    )
    found = router(canary, main)
    assert [backend(found.decide(request(target))) for target in ("/", "/b")] == ["canary", "other"]
    table = IngressTable()
    later = "2026-02-01T00:00:00Z"
    other = ingress("other", ("/", "Prefix", "x"), host="a.example", created=later)
    for tree in (main, canary, other):
        table.put(Key.of(tree), tree)
    for tree, duplicates, replaced in ((main, [], ["other"]), (canary, [], []), (other, ["main"], [])):
        assert [rule.backend[1] for rule in table.duplicates(tree)] == duplicates
        assert [key.name for key, _ in table.replaced(tree)] == replaced


def test_other_path_or_host_is_no_duplicate():
    table = IngressTable()
    later = "2026-02-01T00:00:00Z"
    trees = [
        ingress("a", ("/", "Prefix", "a"), ("/", "Exact", "a"), host="a.example"),
        ingress("b", ("/b", "Prefix", "b"), host="a.example", created=later),
        ingress("c", ("/", "Prefix", "c"), host="c.example", created=later),
    ]
    for tree in trees:
        table.put(Key.of(tree), tree)
    assert [[*table.duplicates(tree), *table.replaced(tree)] for tree in trees] == [[], [], []]
