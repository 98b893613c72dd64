"""Random chains: a few names and keys, so that many certificates fit together, and single changed bytes."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from tests.support.chains import builder as b
from tests.support.chains.builder import Certificate, key
from tests.support.chains.shapes import Case, below_middle, middle, root
from tests.support.seeded import Random

NAMES = ("CN=a", "CN=b", "CN=c")
HOSTS = ("a.svc", "b.svc", "x.a.svc", "10.0.0.1")


def random_cases(random: Random, number: int) -> Iterator[Case]:
    for index in range(number):
        authorities = [_authority(random).der() for _ in range(random.randint(2, 7))]
        split = random.randint(0, len(authorities))
        usage = random.choice(("server", "server", "client"))
        yield Case(
            f"random {index}",
            [_leaf(random).der(), *authorities[split:]],
            [*authorities[:split], *random.sample(authorities, k=random.randint(0, 2))],
            host="" if usage == "client" else random.choice(HOSTS),
            usage=usage,
        )


def _times(random: Random) -> dict[str, Any]:
    shift = random.choices((timedelta(0), timedelta(days=400), timedelta(days=-400)), (12, 1, 1))[0]
    return {"not_before": b.BEFORE + shift, "not_after": b.AFTER + shift}


def _key(random: Random) -> Any:
    return key(f"p256-{random.randint(0, 2)}")


def _authority(random: Random) -> Certificate:
    extensions = []
    if random.random() < 0.15:
        lists = [[b.dns_subtree(random.choice(("svc", "a.svc", ".a.svc", "x")))], []]
        random.shuffle(lists)
        extensions.append(b.name_constraints(*lists))
    if random.random() < 0.2:
        extensions.append(b.key_usage(*random.sample((0, 5, 6), k=2)))
    if random.random() < 0.05:
        extensions.append(b.extension("1.2.3.4", b"", critical=True))
    own = _key(random)
    return Certificate(
        subject=random.choice(NAMES),
        issuer=random.choice(NAMES),
        key=own,
        signer=random.choice((own, _key(random))),
        serial=random.randint(1, 9),
        version=random.choices((3, 1), (15, 1))[0],
        ca=random.choices((True, False, None), (15, 1, 1))[0],
        path=random.choices((None, 0, 1), (6, 1, 1))[0],
        usages=random.choices(((), (b.SERVER,), (b.CLIENT,), (b.ANY,)), (8, 1, 1, 1))[0],
        key_id=random.choice((b"", b"1", b"2")),
        issuer_key_id=random.choice((b"", b"1", b"2")),
        extensions=extensions,
        **_times(random),
    )


def _leaf(random: Random) -> Certificate:
    return Certificate(
        subject=random.choice((*NAMES, "CN=a.svc")),
        issuer=random.choice(NAMES),
        key=key("p256-leaf"),
        signer=_key(random),
        dns=random.sample(("a.svc", "*.svc", "*.a.svc", "b.svc"), k=random.randint(0, 2)),
        ips=random.choice(((), (), ("10.0.0.1",))),
        usages=random.choices(((), (b.SERVER,), (b.CLIENT,), (b.SERVER, b.CLIENT)), (2, 4, 1, 2))[0],
        issuer_key_id=random.choice((b"", b"1", b"2")),
        **_times(random),
    )


def changed_bytes(random: Random, number: int) -> Iterator[Case]:
    """Yield chains in which a byte of one certificate differs from a valid one."""
    constrained = [
        b.name_constraints([b.dns_subtree("svc"), b.ip_subtree("10.0.0.0", 8)], [b.uri_subtree("x.y")])
    ]
    rules = [
        b.policies("1.2.3"),
        b.policy_mappings(("1.2.3", "1.2.4")),
        b.policy_constraints(3, 2),
        b.key_usage(5),
    ]
    chain = [
        below_middle(ips=["10.0.0.1"], emails=["a@b.c"], uris=["https://a.b/c"], issuer_key_id=b"1").der(),
        middle(extensions=[*constrained, *rules], key_id=b"1", path=3, usages=[b.ANY]).der(),
    ]
    trusted = root(key=key("p256-root")).der()
    for index in range(number):
        place = random.randint(0, 1)
        data = bytearray(chain[place])
        position = random.randrange(len(data))
        data[position] = random.choice((random.randrange(256), data[position] ^ 1 << random.randrange(8)))
        changed = [bytes(data) if one == place else chain[one] for one in range(2)]
        yield Case(f"changed byte {position} of certificate {place}, {index}", changed, [trusted])
