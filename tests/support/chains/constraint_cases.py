"""Name constraints: pairs of constraints and names."""

from collections.abc import Iterator
from typing import Any

from tests.support.chains import builder as b
from tests.support.chains.builder import dns_subtree as dns
from tests.support.chains.builder import email_subtree as email
from tests.support.chains.builder import ip_subtree as ip
from tests.support.chains.builder import uri_subtree as uri
from tests.support.chains.shapes import HOST, Case, below_middle, leaf, middle, root

DNS = [HOST]


ROWS: list[tuple[list[bytes], list[bytes], dict[str, Any]]] = [
    ([dns("svc")], [], {}),
    ([dns("default.svc")], [], {}),
    ([dns("example.com")], [], {}),
    ([dns("ault.svc")], [], {}),
    ([dns(".default.svc")], [], {}),
    ([dns(".webhook.default.svc")], [], {}),
    ([dns("")], [], {}),
    ([dns("DEFAULT.svc")], [], {}),
    ([dns("a"), dns("svc"), dns("default.svc")], [], {}),
    ([dns("a"), dns("z.svc")], [], {}),
    ([], [dns("svc")], {}),
    ([], [dns("example.com")], {}),
    ([], [dns("")], {}),
    ([dns("svc")], [dns("default.svc")], {}),
    ([dns("svc")], [dns("other.svc")], {}),
    ([dns("svc")], [], {"dns": [HOST, "a.example.com"]}),
    ([dns("svc")], [], {"ips": ["10.0.0.1"]}),
    ([ip("10.0.0.0", 8)], [], {"ips": ["10.0.0.1"]}),
    ([ip("10.0.0.0", 8)], [], {"ips": ["11.0.0.1"]}),
    ([ip("10.0.0.0", 8)], [], {"ips": ["::1"]}),
    ([ip("::", 0)], [], {"ips": ["::1"]}),
    ([ip("0.0.0.0", 0)], [], {"ips": ["1.2.3.4", "::ffff:1.2.3.4"]}),
    ([], [ip("10.0.0.0", 8)], {"ips": ["10.0.0.1"]}),
    ([], [ip("10.0.0.0", 8), ip("10.1.0.0", 16), ip("9.0.0.0", 8)], {"ips": ["10.1.0.1"]}),
    ([], [ip("2001:db8::", 32)], {"ips": ["2001:db8::1"]}),
    ([], [ip("::ffff:10.0.0.0", 104)], {"ips": ["::ffff:10.0.0.1"]}),
    ([email("example.com")], [], {"emails": ["a@example.com"]}),
    ([email("a@example.com")], [], {"emails": ["a@EXAMPLE.com", '"a"@example.com']}),
    ([email("a@example.com")], [], {"emails": ["A@example.com"]}),
    ([email(".example.com")], [], {"emails": ["a@example.com"]}),
    ([], [email("example.com")], {"emails": ["a@example.com"]}),
    ([email("example.com")], [], {"emails": ["no address"]}),
    ([email("example.com")], [], {"emails": ["a..b@example.com"]}),
    ([email("example.com")], [], {"emails": ["a\\,b@example.com"]}),
    ([uri("example.com")], [], {"uris": ["https://example.com/a"]}),
    ([uri("example.com")], [], {"uris": ["https://a.example.com:8080/a"]}),
    ([uri(".example.com")], [], {"uris": ["https://example.com/a"]}),
    ([uri("example.com")], [], {"uris": ["https://example.org/a"]}),
    ([uri("example.com")], [], {"uris": ["https://10.0.0.1/a"]}),
    ([uri("example.com")], [], {"uris": ["https://[::1]/a"]}),
    ([uri("example.com")], [], {"uris": ["mailto:a@b"]}),
    ([], [uri("example.com")], {"uris": ["spiffe://example.com/a"]}),
    ([dns("svc")], [], {"uris": ["mailto:a@b"]}),
    ([dns("svc")], [], {"dns": [HOST, "bad name"]}),
    ([dns("svc")], [], {"dns": [HOST, "*.svc"]}),
    ([], [dns("a.example.com")], {"dns": [HOST, "*.example.com"]}),
    ([], [dns("a.b.example.com")], {"dns": [HOST, "*.example.com"]}),
    ([], [dns("example.com")], {"dns": [HOST, "*.example.com"]}),
    ([dns("a.example.com"), dns("svc")], [], {"dns": [HOST, "*.example.com"]}),
    ([dns("bad name")], [], {}),
    ([dns("svc.")], [], {}),
    ([dns("..svc")], [], {}),
    ([email("a b@c")], [], {}),
    ([email("a b")], [], {}),
    ([uri("10.0.0.1")], [], {}),
    ([uri("a b")], [], {}),
    ([b.tlv(0x82, b"\xff")], [], {}),
    ([b.tlv(0x87, b"abc")], [], {}),
    ([b.tlv(0x87, bytes(4) + b"\xff\x00\xff\x00")], [], {}),
    ([b.tlv(0xA4, b.name("CN=x"))], [], {}),
    ([], [], {}),
]
"""Permitted names, excluded names, and the fields of the leaf below them."""


def constraint_cases() -> Iterator[Case]:
    yield from _below_a_root()
    yield from _in_longer_chains()


def _below_a_root() -> Iterator[Case]:
    for number, (permitted, excluded, fields) in enumerate(ROWS):
        upper = root(extensions=[b.name_constraints(permitted, excluded)]).der()
        yield Case(f"name constraints {number}", [leaf(**fields).der()], [upper])
    unknown = b.name_constraints([b.tlv(0xA4, b.name("CN=x")), dns("svc")], critical=False)
    yield Case(
        "name constraints of an unknown type, not critical",
        [leaf().der()],
        [root(extensions=[unknown]).der()],
    )


def _in_longer_chains() -> Iterator[Case]:
    svc, other = b.name_constraints([dns("svc")]), b.name_constraints([dns("example.com")])
    chain = [below_middle().der(), middle(extensions=[svc]).der()]
    yield Case("an intermediate permits the name", chain, [root().der()])
    yield Case("an intermediate permits, the root does not", chain, [root(extensions=[other]).der()])
    chain = [below_middle().der(), middle(extensions=[other]).der()]
    yield Case("an intermediate does not permit the name", chain, [root(extensions=[svc]).der()])
    chain = [below_middle().der(), middle(dns=["a.example.com"]).der()]
    yield Case("the intermediate's own name is not permitted", chain, [root(extensions=[svc]).der()])
    yield Case("constraints of the leaf have no effect", [leaf(extensions=[other]).der()], [root().der()])
    both = [root(extensions=[other]).der(), root(serial=2).der()]
    yield Case("two roots of one key, the first does not permit the name", [leaf().der()], both)
    yield Case("a trusted leaf with constraints", [own := leaf(extensions=[other]).der()], [own])
