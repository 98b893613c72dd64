"""How issuers are found, and what makes an authority: one case for each rule, as it is kept and as it is broken."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.support.chains import builder as b
from tests.support.chains.builder import Certificate, key
from tests.support.chains.shapes import HOST, Case, below_middle, leaf, middle, root, single, through_middle


def trust_cases() -> Iterator[Case]:
    yield from subjects()
    yield from key_ids_and_crossed_authorities()
    yield from many_candidates()
    yield from roots()
    yield from trusted_leaves()
    yield from times()
    yield from authorities()
    yield from usages()
    yield from policies()


def subjects() -> Iterator[Case]:
    """Issuers are found by name, then by signature."""
    same = "O=knative.dev,CN=webhook.knative-serving.svc"
    authority = root(subject=same, key=key("p256-a"), extensions=[b.key_usage(0, 5)])
    served = leaf(subject=same, issuer=same, signer=key("p256-a"))
    yield Case("knative: the subjects of authority and leaf are equal", [served.der()], [authority.der()])
    yield Case(
        "the same, and the chain contains the authority", [served.der(), authority.der()], [authority.der()]
    )
    other = root(subject=same, key=key("p256-b"))
    yield Case(
        "equal subjects, another authority of this name first", [served.der()], [other.der(), authority.der()]
    )
    yield Case("equal subjects, the key of no authority", [served.der()], [other.der()])
    yield Case(
        "equal subjects, the authority has a key id",
        [served.der()],
        [root(subject=same, key=key("p256-a"), key_id=b"1").der()],
    )
    yield Case("the issuer has another name", [leaf(issuer="CN=other").der()], [root().der()])
    yield Case("the issuer's name in another case", [leaf(issuer="CN=ROOT").der()], [root().der()])
    yield Case("empty names", [leaf(subject="", issuer="").der()], [root(subject="").der()])
    yield Case("a wrong signature", [leaf(signer=key("p256-b")).der()], [root().der()])
    yield Case(
        "a wrong signature, an organization without a common name",
        [leaf(signer=key("p256-b"), issuer="O=only").der()],
        [root(subject="O=only").der()],
    )
    yield Case(
        "a wrong signature, a name without both",
        [leaf(signer=key("p256-b"), issuer="OU=unit").der()],
        [root(subject="OU=unit", serial=987654321012345).der()],
    )


def key_ids_and_crossed_authorities() -> Iterator[Case]:
    wrong_id = leaf(issuer_key_id=b"wrong")
    yield Case("the key id is wrong, the signature right", [wrong_id.der()], [root(key_id=b"right").der()])
    decoy = root(key=key("p256-b"), key_id=b"k")
    yield Case(
        "the key id is that of an authority that did not sign",
        [leaf(issuer_key_id=b"k").der()],
        [root(key_id=b"x").der(), decoy.der()],
    )
    crossed = middle(subject="CN=root", issuer="CN=other", signer=key("p256-b"), key=key("p256-root"))
    yield Case(
        "cross-signed, the other authority is trusted",
        [leaf().der(), crossed.der()],
        [root(subject="CN=other", key=key("p256-b")).der()],
    )
    yield Case(
        "cross-signed, both are trusted",
        [leaf().der(), crossed.der()],
        [root(subject="CN=other", key=key("p256-b")).der(), root().der()],
    )
    loop = [
        middle(subject="CN=a", issuer="CN=b", key=key("p256-a"), signer=key("p256-b")),
        middle(subject="CN=b", issuer="CN=a", key=key("p256-b"), signer=key("p256-a")),
    ]
    yield Case(
        "authorities that signed each other",
        [leaf(issuer="CN=a", signer=key("p256-a")).der(), *(one.der() for one in loop)],
        [root().der()],
    )
    yield Case(
        "a leaf that signed itself", [Certificate(subject="CN=leaf", dns=[HOST]).der()], [root().der()]
    )
    yield Case(
        "a leaf that signed itself is trusted",
        [(own := Certificate(subject="CN=leaf", dns=[HOST]).der())],
        [own],
    )
    yield Case("an issuer of version 2", [leaf().der()], [root(version=2, ca=None).der()])


def many_candidates() -> Iterator[Case]:
    many = [
        middle(key=key(f"p256-{number % 4}"), serial=number, signer=key("p256-b")).der()
        for number in range(2, 120)
    ]
    yield Case("more candidates than are considered", [below_middle().der(), *many], [root().der()])
    yield Case(
        "the right candidate is behind more than are considered",
        [below_middle().der(), *many, middle().der()],
        [root().der()],
    )


def roots() -> Iterator[Case]:
    trusted, others = root().der(), [root(subject=f"CN={one}", key=key("p256-b")).der() for one in "xyz"]
    yield Case("no roots", [leaf().der()], [])
    yield Case("several roots", [leaf().der()], [*others, trusted])
    yield Case("several roots, in another order", [leaf().der()], [trusted, *others])
    yield Case("a root twice", [leaf().der()], [trusted, trusted])
    yield Case("only other roots", [leaf().der()], others)
    yield Case("an invalid root among others", [leaf().der()], [b"garbage", trusted])
    yield Case("another certificate of the trusted leaf's key", [leaf(serial=2).der()], [leaf().der()])
    yield Case("the intermediate is trusted, the root is not", [below_middle().der()], [middle().der()])
    yield Case("the intermediate is missing", [below_middle().der()], [root().der()])
    yield Case(
        "the chain in another order",
        [below_middle().der(), middle(subject="CN=other").der(), middle().der()],
        [root().der()],
    )
    yield Case("the root is a part of the chain", [leaf().der(), root().der()], [root().der()])
    expired = root(not_after=b.BEFORE, serial=2).der()
    yield Case("the expired root is a part of the chain, and trusted", [leaf().der(), expired], [expired])
    yield Case("an expired and a valid root of one key", [leaf().der()], [expired, trusted])
    yield Case("a valid and an expired root of one key", [leaf().der()], [trusted, expired])
    deep = [
        middle(
            subject=f"CN={one}",
            issuer=f"CN={one + 1}",
            key=key(f"p256-{one % 2}"),
            signer=key(f"p256-{(one + 1) % 2}"),
        ).der()
        for one in range(40)
    ]
    top = root(subject="CN=40", key=key("p256-0")).der()
    yield Case("forty intermediates", [leaf(issuer="CN=0", signer=key("p256-0")).der(), *deep], [top])
    yield Case(
        "forty intermediates, the other way round",
        [leaf(issuer="CN=0", signer=key("p256-0")).der(), *reversed(deep)],
        [top],
    )


def trusted_leaves() -> Iterator[Case]:
    fields: dict[str, dict[str, Any]] = {
        "its issuer is unknown": {},
        "it is expired": {"not_after": b.BEFORE},
        "it is for another host": {"dns": ["a"]},
        "it is for clients": {"usages": [b.CLIENT]},
        "it is an authority that may not sign": {"ca": True, "path": 0, "extensions": [b.key_usage(0)]},
        "it has an unknown critical extension": {"extensions": [b.extension("1.2.3.4", b"", critical=True)]},
        "it is signed with SHA-1": {"digest": "sha1"},
    }
    for name, own in fields.items():
        trusted = leaf(**own).der()
        yield Case(f"the leaf is trusted, {name}", [trusted], [trusted])


def times() -> Iterator[Case]:
    past, future = {"not_after": b.NOW - timedelta(seconds=1)}, {"not_before": b.NOW + timedelta(seconds=1)}
    yield single("expired leaf", **past)
    yield single("leaf that is not yet valid", **future)
    yield single("leaf in its last second", not_after=b.NOW)
    yield single("leaf in its first second", not_before=b.NOW)
    yield single(
        "half a second after the last one", not_after=b.NOW, time=b.NOW + timedelta(milliseconds=500)
    )
    yield single("expired root", root_fields=past)
    yield single("root that is not yet valid", root_fields=future)
    yield through_middle("expired intermediate", **past)
    yield through_middle("intermediate that is not yet valid", **future)
    yield through_middle("expired intermediate and leaf", leaf_fields=past, **past)
    yield single(
        "years of four digits",
        not_before=datetime(1949, 12, 31, tzinfo=UTC),
        not_after=datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC),
    )
    yield single("the end of time is before its beginning", not_before=b.AFTER, not_after=b.BEFORE)
    yield single("a time without seconds", not_after=b.tlv(0x17, b"2606010000Z"))
    yield single("a time with an offset, valid", not_after=b.tlv(0x17, b"260601000000-0100"))
    yield single("a time with an offset, expired", not_after=b.tlv(0x17, b"260601000000+0100"))
    yield single("a time with the offset zero", not_after=b.tlv(0x17, b"270101000000+0000"))
    yield single("a time with a fraction", not_after=b.tlv(0x18, b"20270101000000.5Z"))
    yield single("a day that does not exist", not_after=b.tlv(0x17, b"270230000000Z"))
    yield single("a year of two digits that is 1950", not_after=b.tlv(0x17, b"500101000000Z"))
    yield single("a year of two digits that is 2049", not_after=b.tlv(0x17, b"490101000000Z"))
    yield single("a time of another type", not_after=b.tlv(0x13, b"270101000000Z"))


def authorities() -> Iterator[Case]:
    yield single("a root of version 1", root_fields={"version": 1, "ca": None})
    yield through_middle("an intermediate of version 1", version=1, ca=None)
    yield single("a root without basic constraints", root_fields={"ca": None})
    yield single("a root that is no authority", root_fields={"ca": False})
    yield through_middle("an intermediate without basic constraints", ca=None)
    yield through_middle("an intermediate that is no authority", ca=False)
    yield single("a leaf that is an authority", ca=True)
    yield single("a root that may sign", root_fields={"extensions": [b.key_usage(5, 6)]})
    yield single("a root that may not sign", root_fields={"extensions": [b.key_usage(0, 6)]})
    yield single(
        "a root with an empty key usage",
        root_fields={"extensions": [b.extension("2.5.29.15", b.tlv(0x03, b"\0"))]},
    )
    yield through_middle("an intermediate that may not sign", extensions=[b.key_usage(0)])
    yield single("a leaf that may only agree on keys", extensions=[b.key_usage(4)])
    yield single("path length 0 above a leaf", root_fields={"path": 0})
    yield through_middle("path length 0 above an intermediate", root_fields={"path": 0})
    yield through_middle("path length 1 above an intermediate", root_fields={"path": 1})
    yield through_middle("path length 0 of an intermediate", path=0)
    yield single("a path length without being an authority", root_fields={"ca": False, "path": 0})
    below = middle(subject="CN=below", issuer="CN=middle", key=key("p256-a"), signer=key("p256-middle"))
    two = [leaf(issuer="CN=below", signer=key("p256-a")).der(), below.der()]
    yield Case("path length 0 of the upper intermediate", [*two, middle(path=0).der()], [root().der()])
    yield Case("path length 1 of the upper intermediate", [*two, middle(path=1).der()], [root().der()])
    yield Case(
        "a self-issued intermediate counts",
        [leaf(signer=key("p256-a")).der(), middle(subject="CN=root", key=key("p256-a")).der()],
        [root(path=0).der()],
    )
    unknown = [b.extension("1.2.3.4", b"\x05\x00", critical=True)]
    yield single("an unknown critical extension", extensions=unknown)
    yield single("an unknown extension", extensions=[b.extension("1.2.3.4", b"\x05\x00")])
    yield single("an unknown critical extension of a root", root_fields={"extensions": unknown})
    yield through_middle("an unknown critical extension of an intermediate", extensions=unknown)
    yield single("critical alternative names", names_are_critical=True)
    directory = b.extension("2.5.29.17", b.sequence(b.tlv(0xA4, b.name("CN=x"))), critical=True)
    yield single("critical alternative names of an unknown type", dns=(), extensions=[directory])
    yield single(
        "critical alternative names of an unknown type, of a root", root_fields={"extensions": [directory]}
    )


def usages() -> Iterator[Case]:
    for name, own in (
        ("none", []), ("server", [b.SERVER]), ("client", [b.CLIENT]), ("both", [b.CLIENT, b.SERVER]), ("any", [b.ANY]),
        ("code signing", [b.CODE_SIGNING]), ("unknown", [b.UNKNOWN_USAGE]), ("unknown and server", [b.UNKNOWN_USAGE, b.SERVER]),
    ):  # fmt: skip
        yield single(f"extended key usage of a server: {name}", usages=own)
        yield single(f"extended key usage of a client: {name}", usages=own, usage="client", host="")
        yield single(f"extended key usage of a root: {name}", root_fields={"usages": own})
        yield through_middle(f"extended key usage of an intermediate: {name}", usages=own)
    yield through_middle(
        "a root for clients above an intermediate for any use",
        root_fields={"usages": [b.CLIENT]},
        usages=[b.ANY],
    )
    two = [root(usages=[b.CLIENT]).der(), root(serial=2).der()]
    yield Case("two roots of one key, the second for servers", [leaf().der()], two)
    yield single(
        "a client's certificate has no name to check", usages=[b.CLIENT], usage="client", host="", dns=()
    )
    yield single(
        "an expired client's certificate", usages=[b.CLIENT], usage="client", host="", not_after=b.BEFORE
    )


def policies() -> Iterator[Case]:
    one, two, anything = "1.2.3.1", "1.2.3.2", "2.5.29.32.0"
    explicit = b.policy_constraints(0)
    for name, upper, lower in (
        ("none, and none is required", [], []),
        ("one is required, and there is none", [explicit], []),
        ("one is required and there", [explicit, b.policies(one)], [b.policies(one)]),
        ("another one", [explicit, b.policies(one)], [b.policies(two)]),
        ("any above", [explicit, b.policies(anything)], [b.policies(two)]),
        ("any below", [explicit, b.policies(one)], [b.policies(anything)]),
        ("any is inhibited", [explicit, b.policies(anything), b.inhibit_any_policy(0)], [b.policies(anything)]),
        ("mapped", [explicit, b.policies(one), b.policy_mappings((one, two))], [b.policies(two)]),
        ("mapped to another one", [explicit, b.policies(one), b.policy_mappings((one, "1.2.3.3"))], [b.policies(two)]),
        ("any is mapped", [explicit, b.policies(one), b.policy_mappings((anything, two))], [b.policies(two)]),
        ("mapped from any", [explicit, b.policies(anything), b.policy_mappings((one, two))], [b.policies(two)]),
        ("required two levels below", [b.policy_constraints(2)], []),
        ("required one level below", [b.policy_constraints(1)], []),
        ("required by the leaf", [b.policies(one)], [b.policies(two), explicit]),
    ):  # fmt: skip
        yield through_middle(f"policies: {name}", extensions=upper, leaf_fields={"extensions": lower})
    yield single("a policy twice", extensions=[b.policies(one, one)])
