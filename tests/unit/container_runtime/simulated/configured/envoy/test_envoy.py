"""Envoy: its static configuration, the errors in it, and what it answers."""

import pytest

from mockube.container_runtime.simulated.configured.contract import ProxyReply, Request
from mockube.container_runtime.simulated.configured.envoy.answering import answer
from mockube.container_runtime.simulated.configured.envoy.configuration import (
    EnvoyConfigurationError,
    configuration_of,
)

TEXT = """
admin: {address: {socket_address: {address: 0.0.0.0, port_value: 9901}}}
static_resources:
  listeners:
  - name: main
    address: {socket_address: {address: 0.0.0.0, port_value: 80}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          route_config:
            virtual_hosts:
            - name: one
              domains: ["one.example", "*.one.example"]
              routes:
              - match: {prefix: "/"}
                direct_response: {status: 418, body: {inline_string: one}}
            - name: all
              domains: ["*"]
              routes:
              - match: {path: /old}
                redirect: {path_redirect: /new}
              - match: {prefix: /api}
                route: {cluster: web, prefix_rewrite: /v1}
              - match: {safe_regex: {regex: "/[0-9]+"}}
                route: {cluster: empty}
              - match: {safe_regex: {regex: "/r/a|/r/ab"}}
                route: {cluster: web, regex_rewrite: {pattern: {regex: "(r|a)/?"}, substitution: "<\\\\1>"}}
              - match: {prefix: /h, headers: [{name: x, string_match: {safe_regex: {regex: "a+"}}}]}
                redirect: {path_redirect: /a}
  clusters:
  - name: web
    type: STRICT_DNS
    load_assignment:
      endpoints:
      - lb_endpoints:
        - endpoint: {address: {socket_address: {address: web, port_value: 8080}}}
  - name: empty
"""


def respond(target, reply=None, port=80, host="h", **headers):
    request = Request(method="GET", target=target, headers={"host": host, **headers}, port=port)
    answering, call = answer(configuration_of(TEXT.encode()), request, None), None
    try:
        call = next(answering)
        answering.send(reply)
    except StopIteration as stop:
        return stop.value, call


def test_routes():
    assert respond("/x", host="www.one.example")[0].body == b"one"
    assert respond("/x", host="one.example:80")[0].status == 418
    assert respond("/old")[0].location == "http://h/new"
    assert respond("/nope")[0].status == 404
    assert respond("/12")[0].body == b"no healthy upstream"


def test_patterns():
    _, call = respond("/r/ab?q", ProxyReply(status=200))
    assert call.path == "/<r><a>b?q"
    assert [respond("/h", x=value)[0].status for value in ("aa", "ab", "b")] == [301, 404, 404]


def test_clusters():
    response, call = respond("/api/x", ProxyReply(status=200, headers=(("Server", "nginx"),), body=b"ok"))
    assert (call.host, call.port, call.path) == ("web", 8080, "/v1/x")
    assert (response.status, response.server) == (200, "envoy")
    refused, _ = respond("/api", ProxyReply(problem="connect() failed (111: Connection refused)"))
    assert refused.status == 503
    assert refused.body.endswith(b"delayed connect error: Connection refused")


def test_admin():
    assert respond("/ready", port=9901)[0].body == b"LIVE\n"
    assert b"web::web:8080::health_flags::healthy" in respond("/clusters", port=9901)[0].body


PREFIX = "Protobuf message (type envoy.config.bootstrap.v3.Bootstrap reason INVALID_ARGUMENT:"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("foo: 1", f"{PREFIX}foo: Cannot find field.) has unknown fields"),
        ("static_resources: {clusters: [{hosts: []}]}", f"{PREFIX}(static_resources.clusters[0]) hosts: Cannot find field.) has unknown fields"),
        ("text", "Unable to convert YAML as JSON: text"),
        (TEXT.replace("cluster: web", "cluster: nope"), "route: unknown cluster 'nope'"),
    ],
)  # fmt: skip
def test_errors(text, message):
    with pytest.raises(EnvoyConfigurationError) as error:
        configuration_of(text.encode())
    assert str(error.value) == message


def test_hostile_values_are_errors():
    for text in (
        "static_resources: 1",
        "admin: {address: {socket_address: {port_value: x}}}",
        "a: [",
        "static_resources: {listeners: [1]}",
    ):
        with pytest.raises(EnvoyConfigurationError):
            configuration_of(text.encode())


def test_dynamic_configuration_is_named():
    assert configuration_of(b"dynamic_resources: {lds_config: {}}").not_simulated == (
        "dynamic_resources of envoy",
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("/[0-9]+", "/[0-9", "missing ]: [0-9"),
        ("/r/a|/r/ab", "(a", "missing ): (a"),
        ("(r|a)/?", "*", "no argument for repetition operator: *"),
        ("a+", "(?=a)", "invalid perl operator: (?="),
    ],
)
def test_invalid_pattern_is_refused_in_the_words_of_re2(old, new, message):
    with pytest.raises(EnvoyConfigurationError) as error:
        configuration_of(TEXT.replace(f'"{old}"', f'"{new}"').encode())
    assert str(error.value) == message
