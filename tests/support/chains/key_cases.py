"""Keys, signatures, and certificates that cannot be parsed."""

from collections.abc import Iterator

from tests.support.chains import builder as b
from tests.support.chains.builder import key
from tests.support.chains.shapes import Case, leaf, root, single, through_middle


def key_cases() -> Iterator[Case]:
    yield from signatures()
    yield from unusual_keys()
    yield from malformed()


def signatures() -> Iterator[Case]:
    for kind in ("rsa1024", "rsa2048", "rsa3072", "p224", "p256", "p384", "p521", "ed25519", "dsa"):
        yield single(f"a root with a key {kind}", signer=key(kind), root_fields={"key": key(kind)})
        yield single(f"a leaf with a key {kind}", key=key(kind))
    rsa = {"signer": key("rsa2048"), "root_fields": {"key": key("rsa2048")}}
    for digest in ("sha1", "sha256", "sha384", "sha512", "md5", "pss-sha256", "pss-sha384", "pss-sha512"):
        yield single(f"an RSA signature with {digest}", digest=digest, **rsa)
    for digest in ("sha1", "sha384", "sha512"):
        yield single(f"an ECDSA signature with {digest}", digest=digest)
    yield single(
        "a root that signed itself with SHA-1",
        signer=key("rsa2048"),
        root_fields={"key": key("rsa2048"), "digest": "sha1"},
    )
    yield through_middle(
        "an intermediate signed with SHA-1",
        signer=key("rsa2048"),
        digest="sha1",
        root_fields={"key": key("rsa2048")},
    )
    yield single("an RSA signature, a root with an ECDSA key", signer=key("rsa2048"))
    yield single("an ECDSA signature, a root with an RSA key", root_fields={"key": key("rsa2048")})
    yield single("an Ed25519 signature, a root with an ECDSA key", signer=key("ed25519"))
    yield single("a DSA signature, a root with an ECDSA key", signer=key("dsa"))


def unusual_keys() -> Iterator[Case]:
    yield single(
        "a root with a key of 512 bits",
        signer=key("rsa1024"),
        root_fields={"public_key": b.rsa_public((1 << 511) + 1)},
    )
    yield single(
        "a root with an even modulus",
        signer=key("rsa2048"),
        root_fields={"public_key": b.rsa_public(1 << 2047)},
    )
    yield single(
        "a root with the exponent 1",
        signer=key("rsa2048"),
        root_fields={"public_key": b.rsa_public((1 << 2047) + 1, 1)},
    )
    yield single(
        "a root with an even exponent",
        signer=key("rsa2048"),
        root_fields={"public_key": b.rsa_public((1 << 2047) + 1, 4)},
    )
    yield single(
        "a root with a large exponent",
        signer=key("rsa2048"),
        root_fields={"public_key": b.rsa_public((1 << 2047) + 1, (1 << 32) + 1)},
    )
    yield single("a leaf with a key of 8192 bits", public_key=b.rsa_public((1 << 8191) + 1))
    yield single("a leaf with a key of 8193 bits", public_key=b.rsa_public((1 << 8192) + 1))
    yield single("a signature that is too short", signature=b"\0" * 8)
    yield single(
        "an RSA signature that is too short",
        signature=b"\0" * 8,
        signer=key("rsa2048"),
        root_fields={"key": key("rsa2048")},
    )
    yield single("an unknown signature algorithm", extensions=())
    x25519 = b.sequence(b.sequence(b.identifier("1.3.101.110")), b.bit_string(bytes(32)))
    yield single("a leaf with a key of an unknown type", public_key=x25519)
    yield single("a root with a key of an unknown type", root_fields={"public_key": x25519})


def malformed() -> Iterator[Case]:
    good = leaf().der()
    for name, data in (
        ("nothing", b""), ("a byte more", good + b"\0"), ("a byte less", good[:-1]), ("text", b"certificate"),
        ("an indefinite length", b"\x30\x80" + good[4:] + b"\0\0"),
    ):  # fmt: skip
        yield Case(f"malformed: {name}", [data], [root().der()])
    yield Case("a malformed intermediate", [good, b"garbage"], [root().der()])
    yield single("version 4", version=4)
    yield single("a negative serial number", serial=-1)
    yield single("the serial number zero", serial=0)
    yield single("a different outer algorithm", outer_algorithm=b.sequence(b.identifier("1.2.3")))
    duplicate = b.extension("1.2.3.4", b"")
    yield single("an extension twice", extensions=[duplicate, duplicate])
    yield single("a malformed extension", extensions=[b.sequence(b.integer(1))])
    yield single(
        "an extension with an invalid critical field",
        extensions=[b.sequence(b.identifier("1.2.3"), b.tlv(1, b"\x01"), b.tlv(4, b""))],
    )
    for number, value in ((14, b"x"), (15, b"x"), (17, b"x"), (19, b"x"), (30, b"x"), (31, b"x"), (32, b"x"), (33, b"x"), (35, b"x"), (36, b"x"), (37, b"x"), (54, b"x"), (17, b.sequence(b.tlv(0x82, b"\xff"))), (17, b.sequence(b.tlv(0x87, b"abc"))), (17, b.sequence(b.tlv(0x86, b"https://a:b:c/"))), (17, b.sequence(b.tlv(0x86, b"https://a..b/"))), (19, b.sequence(b.integer(-1))), (30, b.sequence()), (17, b.sequence())):  # fmt: skip
        yield single(
            f"extension 2.5.29.{number} is {value.hex()}",
            dns=(),
            extensions=[b.extension(f"2.5.29.{number}", value)],
        )
    yield single(
        "a critical authority key id", extensions=[b.extension("2.5.29.35", b.sequence(), critical=True)]
    )
    yield single(
        "a critical subject key id", extensions=[b.extension("2.5.29.14", b.tlv(4, b"1"), critical=True)]
    )
    yield single(
        "a critical address of the issuer",
        extensions=[b.extension("1.3.6.1.5.5.7.1.1", b.sequence(), critical=True)],
    )
    for tag, value in ((0x13, b"a@b"), (0x0C, b"\xff"), (0x1E, b"\0a\0b"), (0x1E, b"a"), (0x1E, b"\xd8\0"), (0x14, b"\xe9"), (0x16, b"\xe9"), (0x12, b"1 a"), (0x12, b"1 2"), (0x13, b"*&a"), (0x02, b"\1"), (0x0C, b"a\0b")):  # fmt: skip
        subject = b.sequence(b.tlv(0x31, b.sequence(b.identifier("2.5.4.3"), b.tlv(tag, value))))
        yield single(f"a common name of type {tag}: {value!r}", raw_subject=subject, dns=(), host="ab")
    rsa = b.sequence(b.identifier("1.2.840.113549.1.1.1"))
    yield single("an RSA key without parameters", public_key=b.sequence(rsa, b.bit_string(b"x")))
    yield single("a negative RSA modulus", public_key=b.rsa_public(-5))
    curve = b.sequence(b.identifier("1.2.840.10045.2.1"), b.identifier("1.2.840.10045.3.1.7"))
    for point in (b"", b"\x02" + bytes(32), b"\x04" + bytes(64), b"\x04" + bytes(63)):
        yield single(
            f"an ECDSA key with a point of {len(point)} bytes",
            public_key=b.sequence(curve, b.bit_string(point)),
        )
    yield single("a key of another curve", key=key("k256"))
