"""HTTPRoutes are attached to listeners, and decide about requests by their precedence."""

import pytest

from mockube.client.resources import Key
from mockube.publisher.gateway_attachment import (
    Cluster,
    Parent,
    ReferenceProblem,
    class_status,
    gateway_status,
    is_granted,
    parents_of,
    route_status,
)
from mockube.publisher.gateway_routing import GatewayRouter, MatchTable, shared_host
from mockube.publisher.http_routing import Forward
from tests.unit.publisher.test_ingress_routing import request


def gateway(*listeners, namespace="default"):
    return {
        "metadata": {"name": "gw", "namespace": namespace},
        "spec": {"gatewayClassName": "c", "listeners": listeners or [listener()]},
    }


def listener(name="http", protocol="HTTP", port=80, **fields):
    return {"name": name, "protocol": protocol, "port": port, **fields}


def rule(service, *matches, **fields):
    return {"matches": list(matches), "backendRefs": [{"name": service, "port": 80}], **fields}


def path(value, kind="PathPrefix", **fields):
    return {"path": {"type": kind, "value": value}, **fields}


def route(name, *rules, hostnames=(), namespace="default", **reference):
    return {
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {
            "parentRefs": [{"name": "gw", "namespace": "default", **reference}],
            "hostnames": list(hostnames),
            "rules": list(rules),
        },
    }


def cluster(*missing, grants=()):
    return Cluster(
        namespace_labels=lambda name: {"kubernetes.io/metadata.name": name},
        service=lambda _, name: None if name in missing else {"spec": {}},
        grants=grants,
    )


def parent(tree, of_gateway, of_cluster=None):
    (found,) = parents_of(tree, lambda *_: of_gateway, of_cluster or cluster())
    return found


def router(*routes, of_gateway=None, of_cluster=None, number=0, unserved=()):
    table = MatchTable()
    for each in routes:
        table.put(Key.of(each), parent(each, of_gateway or gateway(), of_cluster).matches)
    return GatewayRouter(table, lambda _: number, unserved)


def decide(found, *arguments, **fields):
    decision = found.decide(request(*arguments, **fields))
    return decision.backend[1] if isinstance(decision, Forward) else decision.status


@pytest.mark.parametrize(
    ("of_listener", "of_route", "shared"),
    [
        ("", "a.example", "a.example"),
        ("a.example", "", "a.example"),
        ("*.example", "a.example", "a.example"),
        ("*.example", "a.b.example", "a.b.example"),
        ("a.example", "*.example", "a.example"),
        ("*.example", "example", None),
        ("a.example", "b.example", None),
        ("A.example", "a.Example", "a.example"),
    ],
)
def test_hosts_of_listener_and_route_are_intersected(of_listener, of_route, shared):
    assert shared_host(of_listener, of_route) == shared


def test_most_specific_match_decides():
    found = router(
        route("any", rule("any")),
        route("wild", rule("wild"), hostnames=["*.example"]),
        route(
            "own",
            rule("root", path("/")),
            rule("long", path("/foo")),
            rule("exact", path("/foo", "Exact")),
            rule("post", path("/bar", method="POST")),
            rule("header", path("/bar", headers=[{"name": "X-A", "value": "1"}])),
            rule("query", path("/bar", queryParams=[{"name": "q", "value": "1"}])),
            rule("pattern", path("/p/[0-9]+", "RegularExpression")),
            rule("alternatives", path("/r/a|/r/ab*", "RegularExpression")),
            rule("invalid", path("/i(", "RegularExpression")),
            rule(
                "header pattern",
                path("/bar", headers=[{"name": "X-B", "value": "a|ab", "type": "RegularExpression"}]),
            ),
            hostnames=["a.example"],
        ),
    )
    assert decide(found, "/", "c.test") == "any"
    assert decide(found, "/", "b.example") == decide(found, "/", "c.b.example") == "wild"
    assert decide(found, "/x") == "root"
    assert decide(found, "/foo") == "exact"
    assert decide(found, "/foo/x") == "long"
    assert decide(found, "/foobar") == "root"
    assert decide(found, "/bar", x_a="1") == "header"
    assert decide(found, "/bar?q=1") == "query"
    assert decide(found, "/bar") == "root"
    assert decide(found, "/p/12") == "pattern"
    assert decide(found, "/p/12/x") == "root"
    assert decide(found, "/P/12") == "root"
    assert decide(found, "/r/ab") == "alternatives"
    assert decide(found, "/i") == decide(found, f"/r/a{'b' * 9000}") == "root"
    assert decide(found, "/bar", x_b="ab") == "header pattern"
    assert decide(found, "/bar", x_b="abc") == "root"


def test_backends_have_weights_and_missing_ones_fail():
    backends = [
        {"name": "a", "port": 80, "weight": 9},
        {"name": "b", "port": 80},
        {"name": "zero", "weight": 0},
    ]
    tree = route("r", {"backendRefs": backends})
    assert decide(router(tree, number=8), "/") == "a"
    assert decide(router(tree, number=9), "/") == "b"
    assert decide(router(tree, of_cluster=cluster("b"), number=9), "/") == 500
    assert decide(router(route("none", {"filters": []})), "/") == 500


def test_filters_change_request_and_response():
    filters = [
        {"type": "URLRewrite", "urlRewrite": {"hostname": "b.test", "path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/new"}}},
        {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "A", "value": "1"}], "add": [{"name": "B", "value": "2"}, {"name": "C", "value": "3"}], "remove": ["D"]}},
        {"type": "ResponseHeaderModifier", "responseHeaderModifier": {"remove": ["Server"], "add": [{"name": "E", "value": "5"}]}},
    ]  # fmt: skip
    found = router(route("r", rule("s", path("/old"), filters=filters, timeouts={"request": "1m1s500ms"})))
    decision = found.decide(request("/old/x?y=1", b="0"))
    assert (decision.target, decision.host, decision.seconds) == ("/new/x?y=1", "b.test", 61.5)
    assert {("A", "1"), ("B", "0,2"), ("D", "")} <= {*decision.headers}
    assert decision.added_headers == [("C", "3")]
    assert (decision.response_headers, decision.added_response_headers) == ([("Server", "")], [("E", "5")])


@pytest.mark.parametrize(
    ("redirect", "location"),
    [
        ({"scheme": "https", "statusCode": 301}, "https://a.example/old?q=1"),
        ({"hostname": "b.test", "port": 8080}, "http://b.test:8080/old?q=1"),
        ({"path": {"type": "ReplaceFullPath", "replaceFullPath": "/all"}}, "http://a.example/all?q=1"),
    ],
)
def test_redirect(redirect, location):
    filters = [{"type": "RequestRedirect", "requestRedirect": redirect}]
    found = router(route("r", {"matches": [path("/old")], "filters": filters})).decide(request("/old?q=1"))
    assert (found.status, dict(found.headers)["Location"]) == (redirect.get("statusCode", 302), location)


def test_route_of_secure_listener_gets_requests_with_tls_only():
    secure = gateway(listener("https", "HTTPS", 443))
    found = router(route("r", rule("s")), of_gateway=secure)
    assert decide(found, "/", uses_tls=True) == "s"
    assert decide(found, "/") == 404


@pytest.mark.parametrize(
    ("tree", "of_gateway", "reason"),
    [
        (route("r", rule("s")), gateway(), "Accepted"),
        (route("r", rule("s"), sectionName="no"), gateway(), "NoMatchingParent"),
        (route("r", rule("s"), namespace="other"), gateway(), "NotAllowedByListeners"),
        (
            route("r", rule("s"), hostnames=["b.test"]),
            gateway(listener(hostname="a.test")),
            "NoMatchingListenerHostname",
        ),
        (
            route("r", rule("s"), namespace="other"),
            gateway(listener(allowedRoutes={"namespaces": {"from": "All"}})),
            "Accepted",
        ),
        (
            route("r", rule("s"), namespace="other"),
            gateway(
                listener(
                    allowedRoutes={
                        "namespaces": {
                            "from": "Selector",
                            "selector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}},
                        }
                    }
                )
            ),
            "Accepted",
        ),
        (route("r", rule("s")), gateway(listener(protocol="TCP")), "NotAllowedByListeners"),
    ],
)
def test_route_is_attached_where_listener_allows_it(tree, of_gateway, reason):
    assert parent(tree, of_gateway).reason == reason


def test_reference_to_other_namespace_needs_grant():
    tree = route("r", {"backendRefs": [{"name": "s", "namespace": "other", "port": 80}]})
    problem = parent(tree, gateway()).backends_problem
    assert problem.reason == "RefNotPermitted"
    assert 'service "other/s" is in another namespace' in problem.message
    grant = {
        "metadata": {"name": "g", "namespace": "other"},
        "spec": {
            "from": [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "default"}],
            "to": [{"group": "", "kind": "Service"}],
        },
    }
    assert parent(tree, gateway(), cluster(grants=[grant])).backends_problem is None
    source = ("gateway.networking.k8s.io", "HTTPRoute", "third")
    assert not is_granted(source, ("", "Service", "other", "s"), [grant])


NOW = "2026-01-01T00:00:00Z"


def conditions_by_type(conditions):
    return {each["type"]: (each["status"], each["reason"], each["message"]) for each in conditions}


def test_route_to_missing_service_says_which():
    parents = [parent(route("r", rule("gone")), gateway(), cluster("gone"))]
    status = route_status(route("r", rule("gone")), parents, lambda _: "c", NOW)
    found = conditions_by_type(status["parents"][0]["conditions"])
    assert found["ResolvedRefs"] == ("False", "BackendNotFound", 'service "default/gone" does not exist')


def test_listener_that_is_not_served_says_why():
    tree = gateway(listener("tls", "HTTPS", 443), listener("raw", "TCP", 9))
    problem = ReferenceProblem("InvalidCertificateRef", 'secret "default/c" does not exist')
    tls, raw = gateway_status(tree, "127.0.0.1", {}, {"tls": problem}, NOW)["listeners"]
    assert conditions_by_type(tls["conditions"])["Programmed"] == ("False", "Invalid", problem.message)
    unsupported = "only listeners with the protocol HTTP or HTTPS are served"
    assert conditions_by_type(raw["conditions"])["Accepted"] == ("False", "UnsupportedProtocol", unsupported)


def test_removed_route_matches_nothing():
    tree = route("r", rule("s"))
    table = MatchTable()
    table.put(Key.of(tree), parent(tree, gateway()).matches)
    table.put(Key.of(tree), ())
    assert [*table.of_host("a.example")] == []


def test_listener_without_certificate_serves_no_route():
    both = gateway(listener(), listener("https", "HTTPS", 443))
    found = router(route("r", rule("web")), of_gateway=both, unserved={("default", "gw", "https")})
    assert decide(found) == "web"
    assert decide(found, uses_tls=True) == 404
    assert decide(router(route("r", rule("web")), of_gateway=both), uses_tls=True) == "web"


def test_class_is_accepted_again_in_its_next_generation_and_by_one_controller():
    gateway_class = {"metadata": {"name": "c", "generation": 1}}
    first = class_status(gateway_class, "2026-01-01T00:00:00Z")
    changed = {"metadata": {"name": "c", "generation": 2}, "status": first}
    second = class_status(changed, "2026-01-02T00:00:00Z")
    assert second == {"conditions": [{**first["conditions"][0], "observedGeneration": 2}]}
    other = {
        "type": "Accepted",
        "status": "True",
        "observedGeneration": 2,
        "message": "of another controller",
    }
    accepted = {**changed, "status": {"conditions": [other]}}
    assert class_status(accepted, "2026-01-03T00:00:00Z") == accepted["status"]


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/public/../admin", 404),
        ("/public/%2e%2e/admin", 404),
        ("/admin/..//public/./a%41%20?b=/../c", "/public/aA%20?b=/../c"),
        ("/public//a", "/public/a"),
        ("/public\\a", "/public/a"),
        ("/public/..\\admin", 404),
        ("/../public", "/public"),
    ],
)
def test_path_is_normalised_for_rules_and_backends(target, expected):
    found = router(route("r", rule("public", path("/public")))).decide(request(target))
    assert (found.target if isinstance(found, Forward) else found.status) == expected


@pytest.mark.parametrize(
    ("target", "location"),
    [("/public/..%2fadmin?a=%2f", "/admin?a=%2f"), ("/public%5Ca", "/public/a")],
)
def test_path_with_an_escaped_slash_is_redirected_to_that_without(target, location):
    found = router(route("r", rule("public", path("/public")))).decide(request(target))
    assert (found.status, found.headers) == (307, [("Location", location)])


@pytest.mark.parametrize("target", ["/shop%2fa", "/shop%5Ca"])
def test_path_with_an_escaped_slash_is_left_to_others_without_a_route(target):
    found = router(route("r", rule("public", path("/public")))).decide(request(target))
    assert (found.status, found.headers) == (404, ())


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"allowedRoutes": {"kinds": [{"kind": "TCPRoute"}]}}, "NotAllowedByListeners"),
        ({"allowedRoutes": {"kinds": [{"kind": "TCPRoute"}, {"kind": "HTTPRoute"}]}}, "Accepted"),
        ({"protocol": "TCP"}, "NotAllowedByListeners"),
    ],
)
def test_listener_has_the_kinds_of_routes_that_it_allows(fields, reason):
    tree = gateway({**listener(), **fields})
    assert parent(route("r", rule("web")), tree).reason == reason


def test_listener_with_unknown_protocol_is_not_programmed():
    http, raw = gateway_status(gateway(listener(), listener("raw", "TCP", 9)), "127.0.0.1", {}, {}, NOW)[
        "listeners"
    ]
    assert http["supportedKinds"] == [{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute"}]
    assert conditions_by_type(http["conditions"])["Programmed"][:2] == ("True", "Programmed")
    assert raw["supportedKinds"] == []
    assert conditions_by_type(raw["conditions"])["Programmed"][:2] == ("False", "Invalid")


def test_parents_of_other_controllers_stay_in_the_status_of_a_route():
    tree = route("r", rule("web"))
    first = route_status(tree, [parent(tree, gateway())], lambda _: "c", "2025-01-01T00:00:00Z")
    other = {"parentRef": {"name": "far"}, "controllerName": "x", "conditions": []}
    again = {**tree, "status": {"parents": [*first["parents"], other]}}
    found = route_status(again, [parent(again, gateway())], lambda _: "c", NOW)["parents"]
    assert [each["parentRef"]["name"] for each in found] == ["far", "gw"]
    times = {each["lastTransitionTime"] for each in found[1]["conditions"]}
    assert times == {"2025-01-01T00:00:00Z"}


def redirected(redirect, target="/old?q=1", *, uses_tls=False):
    filters = [{"type": "RequestRedirect", "requestRedirect": redirect}]
    of_gateway = gateway(listener("https", "HTTPS", 443) if uses_tls else listener())
    tree = route("r", {"matches": [path("/old")], "filters": filters})
    found = router(tree, of_gateway=of_gateway).decide(request(target, uses_tls=uses_tls))
    return found.status, dict(found.headers).get("Location")


@pytest.mark.parametrize(
    ("redirect", "fields", "location"),
    [
        ({}, {}, "http://a.example/old?q=1"),
        ({}, {"uses_tls": True}, "https://a.example:80/old?q=1"),
        ({"scheme": "http"}, {}, "http://a.example/old?q=1"),
        ({"scheme": "https", "port": 443}, {}, "https://a.example/old?q=1"),
        ({"scheme": "https", "port": 80}, {}, "https://a.example:80/old?q=1"),
        ({"port": 443}, {}, "http://a.example:443/old?q=1"),
        (
            {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/new/"}},
            {},
            "http://a.example/new?q=1",
        ),
        ({"path": {"type": "ReplacePrefixMatch"}}, {}, "http://a.example/?q=1"),
        ({"path": {"type": "ReplaceFullPath"}}, {}, "http://a.example/?q=1"),
    ],
)
def test_redirect_changes_what_it_names(redirect, fields, location):
    assert redirected(redirect, **fields) == (302, location)


def test_redirect_whose_location_has_control_characters_is_refused():
    assert redirected({"hostname": "a\r\nb"}) == (400, None)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [(None, 60), ("", 60), ("0s", 86400), ("1h", 3600), ("250ms", 0.25), ("1h2m3s4ms", 3723.004)],
)
def test_timeout_of_a_route(text, seconds):
    timeouts = {} if text is None else {"timeouts": {"request": text}}
    assert router(route("r", rule("s", **timeouts))).decide(request()).seconds == seconds


def test_timeout_of_the_backend_counts_before_that_of_the_request():
    timeouts = {"backendRequest": "2s", "request": "5s"}
    assert router(route("r", rule("s", timeouts=timeouts))).decide(request()).seconds == 2


def test_filters_of_a_backend_apply_after_those_of_the_rule():
    def set_header(name, value):
        change = {"set": [{"name": name, "value": value}]}
        return {"type": "RequestHeaderModifier", "requestHeaderModifier": change}

    backends = [{"name": "s", "port": 80, "filters": [set_header("B", "2")]}]
    found = router(route("r", {"filters": [set_header("A", "1")], "backendRefs": backends})).decide(request())
    assert [each for each in found.headers if each[0] in "AB"] == [("A", "1"), ("B", "2")]


def test_request_of_a_route_says_where_it_comes_from():
    found = router(route("r", rule("s"))).decide(request(client="192.0.2.7", uses_tls=False))
    assert found.headers == [("X-Forwarded-For", "192.0.2.7"), ("X-Forwarded-Proto", "http")]
    secure = gateway(listener("https", "HTTPS", 443))
    found = router(route("r", rule("s")), of_gateway=secure).decide(request(uses_tls=True))
    assert ("X-Forwarded-Proto", "https") in found.headers
    assert (found.host, found.target) == ("", "/")


def test_rewrite_keeps_what_it_does_not_name():
    def rewritten(rewrite, target="/old/x"):
        filters = [{"type": "URLRewrite", "urlRewrite": rewrite}]
        found = router(route("r", rule("s", path("/old"), filters=filters))).decide(request(target))
        return found.host, found.target

    assert rewritten({"hostname": "b.test"}) == ("b.test", "/old/x")
    full = {"type": "ReplaceFullPath", "replaceFullPath": "/all"}
    assert rewritten({"path": full}, "/old?q") == ("", "/all?q")
    prefix = {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}
    assert rewritten({"path": prefix}) == ("", "/x")
    assert rewritten({"path": prefix}, "/old") == ("", "/")


@pytest.mark.parametrize(
    ("condition", "fields", "matches"),
    [
        ({"headers": [{"name": "X-A", "value": "1"}]}, {}, False),
        ({"headers": [{"name": "X-A", "value": "1"}]}, {"x_a": "2"}, False),
        ({"headers": [{"name": "X-A", "value": "1"}, {"name": "X-B", "value": "2"}]}, {"x_a": "1"}, False),
        (
            {"headers": [{"name": "X-A", "value": "1"}, {"name": "X-B", "value": "2"}]},
            {"x_a": "1", "x_b": "2"},
            True,
        ),
        ({"method": "GET"}, {}, True),
        ({"method": "POST"}, {}, False),
        ({"queryParams": [{"name": "q", "value": "1"}]}, {"target": "/?q=1&q=2"}, True),
        ({"queryParams": [{"name": "q", "value": "2"}]}, {"target": "/?q=1&q=2"}, False),
        ({"queryParams": [{"name": "q", "value": ""}]}, {"target": "/?q="}, True),
        ({"queryParams": [{"name": "q", "value": ""}]}, {"target": "/"}, False),
        (
            {"queryParams": [{"name": "q", "value": "a+", "type": "RegularExpression"}]},
            {"target": "/?q=aa"},
            True,
        ),
    ],
)
def test_match_needs_all_of_its_conditions(condition, fields, matches):
    target = fields.pop("target", "/")
    found = router(route("r", rule("s", condition)))
    assert decide(found, target, **fields) == ("s" if matches else 404)


def at(created, name, **fields):
    tree = route(name, rule(name, **fields))
    tree["metadata"]["creationTimestamp"] = created
    return tree


def test_older_route_then_the_first_by_name_decides():
    early, late = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    assert decide(router(at(late, "a"), at(early, "z"))) == "z"
    assert decide(router(at(early, "z"), at(early, "a"))) == "a"


def test_match_with_more_conditions_goes_first():
    headers = [{"name": name, "value": "1"} for name in ("X-A", "X-B")]
    queries = [{"name": name, "value": "1"} for name in "pq"]
    rules = [
        rule("one header", {"headers": headers[:1]}),
        rule("two headers", {"headers": headers}),
        rule("one query", {"queryParams": queries[:1]}),
        rule("two queries", {"queryParams": queries}),
        rule("method", {"method": "GET"}),
    ]
    found = router(route("r", *rules))
    assert decide(found, "/?p=1&q=1", x_a="1", x_b="1") == "method"
    found = router(route("r", *rules[:4]))
    assert decide(found, "/?p=1&q=1", x_a="1", x_b="1") == "two headers"
    assert decide(found, "/?p=1&q=1", x_a="1") == "one header"
    assert decide(found, "/?p=1&q=1") == "two queries"
    found = router(
        route("r", rule("one", path("/p.*", "RegularExpression")), rule("exact", path("/p", "Exact")))
    )
    assert (decide(found, "/p"), decide(found, "/pq")) == ("exact", "one")
    found = router(
        route("r", rule("prefix", path("/long")), rule("pattern", path("/.*", "RegularExpression")))
    )
    assert decide(found, "/long") == "pattern"


def test_plain_listener_serves_requests_without_tls_only():
    found = router(route("r", rule("s")))
    assert (decide(found), decide(found, uses_tls=True)) == ("s", 404)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("a.b.example", "deep"),
        ("c.b.example", "deep"),
        ("x.example", "wild"),
        ("example", "any"),
        ("", "any"),
    ],
)
def test_longest_wildcard_of_a_host_decides(host, expected):
    found = router(
        route("any", rule("any")),
        route("wild", rule("wild"), hostnames=["*.example"]),
        route("deep", rule("deep"), hostnames=["*.b.example"]),
    )
    assert decide(found, "/", host) == expected


@pytest.mark.parametrize(
    ("reference", "is_followed"),
    [
        ({}, True),
        ({"group": "gateway.networking.k8s.io", "kind": "Gateway"}, True),
        ({"kind": "Service"}, False),
        ({"group": ""}, False),
    ],
)
def test_route_refers_to_gateways(reference, is_followed):
    tree = route("r", rule("s"), **reference)
    assert len([*parents_of(tree, lambda *_: gateway(), cluster())]) == is_followed


@pytest.mark.parametrize(
    ("reference", "names"),
    [
        ({}, ["http", "other"]),
        ({"sectionName": "other"}, ["other"]),
        ({"port": 80}, ["http"]),
        ({"sectionName": "other", "port": 80}, []),
    ],
)
def test_reference_names_listeners_by_section_and_port(reference, names):
    of_gateway = gateway(listener(), listener("other", port=81))
    assert parent(route("r", rule("s"), **reference), of_gateway).listeners == names


def test_gateway_in_the_namespace_of_the_route_needs_no_name_of_it():
    tree = route("r", rule("s"), namespace="shop")
    del tree["spec"]["parentRefs"][0]["namespace"]
    asked = []
    assert [*parents_of(tree, lambda *key: asked.append(key), cluster())] == []
    assert asked == [("shop", "gw")]


@pytest.mark.parametrize(
    ("source", "namespaces", "is_allowed"),
    [
        ({"from": "None"}, "default", False),
        ({"from": "Same"}, "default", True),
        ({"from": "Same"}, "other", False),
        ({"from": "All"}, "other", True),
        ({"from": "Selector", "selector": {"matchLabels": {"a": "b"}}}, "default", False),
    ],
)
def test_listener_allows_routes_of_namespaces(source, namespaces, is_allowed):
    of_gateway = gateway(listener(allowedRoutes={"namespaces": source}))
    found = parent(route("r", rule("s"), namespace=namespaces), of_gateway)
    assert (found.reason == "Accepted") is is_allowed


@pytest.mark.parametrize(
    ("reference", "reason", "message"),
    [
        ({"kind": "Bucket"}, "InvalidKind", "the backend s is a Bucket, and no Service"),
        ({"group": "x.io"}, "InvalidKind", "the backend s is a Service, and no Service"),
        ({"kind": "Service", "group": ""}, None, None),
    ],
)
def test_backend_is_a_service(reference, reason, message):
    tree = route("r", {"backendRefs": [{"name": "s", "port": 80, **reference}]})
    problem = parent(tree, gateway()).backends_problem
    assert (problem and problem.reason, problem and problem.message) == (reason, message)


SOURCE = ("gateway.networking.k8s.io", "HTTPRoute", "default")
FROM = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "namespace": "default"}
TO = {"group": "", "kind": "Service"}


@pytest.mark.parametrize(
    ("namespace", "origin", "target", "is_allowed"),
    [
        ("other", FROM, TO, True),
        ("other", FROM, TO | {"name": "s"}, True),
        ("other", FROM, TO | {"name": ""}, True),
        ("other", FROM, TO | {"name": "t"}, False),
        ("third", FROM, TO, False),
        ("other", FROM | {"namespace": "third"}, TO, False),
        ("other", FROM | {"kind": "GRPCRoute"}, TO, False),
        ("other", FROM | {"group": "x.io"}, TO, False),
        ("other", FROM, {"kind": "Secret"}, False),
        ("other", FROM, TO | {"group": "x.io"}, False),
    ],
)
def test_reference_needs_a_grant_for_its_source_and_target(namespace, origin, target, is_allowed):
    grant = {"metadata": {"name": "g", "namespace": namespace}, "spec": {"from": [origin], "to": [target]}}
    assert is_granted(SOURCE, ("", "Service", "other", "s"), [{"metadata": {}}, grant]) is is_allowed
    assert is_granted(SOURCE, ("", "Service", "default", "s"), [])


def test_conditions_keep_their_time_until_they_change():
    tree = gateway(listener())
    first = gateway_status(tree, "127.0.0.1", {"http": 2}, {}, "2025-01-01T00:00:00Z")
    problem = {"http": ReferenceProblem("InvalidCertificateRef", "none")}
    second = gateway_status({**tree, "status": first}, "127.0.0.1", {}, problem, NOW)
    (before,), (after,) = first["listeners"], second["listeners"]
    assert (before["attachedRoutes"], after["attachedRoutes"]) == (2, 0)
    times = {each["type"]: each["lastTransitionTime"] for each in after["conditions"]}
    assert times == {
        "Accepted": "2025-01-01T00:00:00Z",
        "Conflicted": "2025-01-01T00:00:00Z",
        "Programmed": NOW,
        "ResolvedRefs": NOW,
    }
    assert {each["lastTransitionTime"] for each in second["conditions"]} == {"2025-01-01T00:00:00Z"}
    assert first["addresses"] == [{"type": "IPAddress", "value": "127.0.0.1"}]


def test_status_of_a_route_names_the_controller_of_each_parent():
    tree = route("r", rule("s"))
    found = route_status(tree, [parent(tree, gateway())], lambda key: f"c of {key}", NOW)["parents"]
    assert [each["controllerName"] for each in found] == ["c of default/gw"]
    rejected = route("r", rule("s"), sectionName="no")
    found = route_status(rejected, [parent(rejected, gateway())], lambda _: "c", NOW)["parents"]
    accepted = conditions_by_type(found[0]["conditions"])["Accepted"]
    assert accepted[:2] == ("False", "NoMatchingParent")
    assert accepted[2].startswith("the Gateway has no listener")


def test_parents_of_a_route_keep_the_times_of_their_own_conditions():
    tree = route("r", rule("s"))
    far, near = ({"name": "gw", "sectionName": name} for name in ("far", "near"))
    old = {"type": "Accepted", "status": "True", "lastTransitionTime": "2025-01-01T00:00:00Z"}
    older = {**old, "lastTransitionTime": "2024-01-01T00:00:00Z"}
    present = [
        {"parentRef": reference, "controllerName": "c", "conditions": [condition]}
        for reference, condition in ((far, old), (near, older))
    ]
    parents = [
        Parent(reference=reference, reason="Accepted", backends_problem=None, listeners=[])
        for reference in (near, far)
    ]
    found = route_status({**tree, "status": {"parents": present}}, parents, lambda _: "c", NOW)["parents"]
    times = [each["conditions"][0]["lastTransitionTime"] for each in found]
    assert times == ["2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"]
