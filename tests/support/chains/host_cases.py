"""Names of servers: which certificates are valid for which hosts."""

from collections.abc import Iterator

from tests.support.chains.shapes import HOST, Case, single


def host_cases() -> Iterator[Case]:
    yield single("another name", host="a.example.com")
    yield single("several names", dns=["a", "b.c"], host="d")
    yield single("the second of several names", dns=["a", "b.c"], host="b.c")
    yield single("names of both types", dns=["a"], ips=["10.0.0.1"], host="b")
    yield single("a hundred names", dns=[f"n{one}" for one in range(100)], host="d")
    yield single("ninety-nine names", dns=[f"n{one}" for one in range(99)], host="d")
    yield single("a hundred addresses", dns=(), ips=[f"10.0.0.{one}" for one in range(100)], host="10.1.0.0")
    for pattern, name in (
        ("*.example.com", "a.example.com"), ("*.example.com", "A.EXAMPLE.COM"), ("*.example.com", "a.b.example.com"),
        ("*.example.com", "example.com"), ("*.example.com", ".example.com"), ("*", "a"), ("*.", "a."), ("*.*.com", "a.b.com"),
        ("a*.example.com", "ab.example.com"), ("*a.example.com", "ba.example.com"), ("a.*.com", "a.b.com"), ("*.com", "a.com"),
        ("*.svc", "10.0.0.1"), ("example.com", "example.com."), ("example.com.", "example.com."), ("example.com.", "example.com"),
        ("a_b.c", "a_b.c"), ("-a.b", "-a.b"), ("a-.b", "a-.b"), ("a b", "a b"), ("a..b", "a..b"), ("", "a"), (".", "a"),
        ("xn--fiqs8s.cn", "xn--fiqs8s.cn"), ("*.xn--fiqs8s.cn", "a.xn--fiqs8s.cn"), ("10.0.0.1", "10.0.0.1"), ("a/b", "a/b"),
        ("*.*", "*.*"), ("*.example.com", "*.example.com"),
    ):  # fmt: skip
        yield single(f"the name {pattern!r} for the host {name!r}", dns=[pattern], host=name)
    yield single("two empty names", dns=["", ""], host="a")
    yield single("a common name without alternative names", subject=f"CN={HOST}", dns=())
    yield single("a common name in another case", subject=f"CN={HOST.upper()}", dns=())
    yield single("a wildcard as the common name", subject="CN=*.default.svc", dns=())
    yield single("a common name with other alternative names", subject=f"CN={HOST}", dns=["a"])
    yield single("a common name with an address of mail", subject=f"CN={HOST}", dns=(), emails=["a@b"])
    yield single("an address as the common name", subject="CN=10.0.0.1", dns=(), host="10.0.0.1")
    yield single("no names at all", subject="CN=other", dns=())
    yield single("no names at all, for an address", subject="CN=other", dns=(), host="10.0.0.1")
    for addresses, host in (
        (["10.0.0.1"], "10.0.0.1"), (["10.0.0.1", "::1"], "10.0.0.2"), (["::1"], "::1"), (["::1"], "[::1]"),
        (["2001:db8::1"], "2001:DB8:0::1"), (["::ffff:10.0.0.1"], "10.0.0.1"), (["10.0.0.1"], "::ffff:10.0.0.1"),
        (["fe80::1"], "fe80::1%eth0"), (["10.0.0.1"], "10.0.0.01"), (["10.0.0.1"], "[10.0.0.1]"), (["10.0.0.1"], "010.0.0.1"),
        (["::ffff:10.0.0.1", "1:0:0:2::3", "1::2:0:0:3"], "10.0.0.9"), (["0.0.0.0"], "0.0.0.0"), (["::"], "::"),
    ):  # fmt: skip
        yield single(f"the addresses {addresses} for {host}", dns=(), ips=addresses, host=host)
