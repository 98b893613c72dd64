"""Name constraints: the names that an authority's certificate permits and excludes for all certificates below it.

A name is searched in sorted subtrees, so that the time of a check does not grow with the product of names and constraints.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from ipaddress import ip_address
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from msgspec import Struct, field

from mockube.apimachinery import gotext, uri

from .addresses import address_text, network_text, packed_ipv4
from .der import CertificateError

_LABELS: Final = re.compile(r"[\x21-\x2d\x2f-\x7e]+(?:\.[\x21-\x2d\x2f-\x7e]+)*")
_ATOMS: Final = re.compile(r"(?:[0-9A-Za-z!#$%&'*+\-/=?^_`{|}~.]|\\.)+", re.DOTALL)
_QUOTED: Final = re.compile(
    r'"((?:[\x01-\x08\x0b\x0c\x0e-\x21\x23-\x5b\x5d-\x7f]|\\[\x01-\x09\x0b\x0c\x0e-\x7f])*)"'
)
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
Value = TypeVar("Value")
_Find: TypeAlias = Callable[[Value], str | None]
"""Returns the subtree that contains a name."""
Network = tuple[bytes, bytes]
"""An address and a mask."""


class Names(Struct, frozen=True, kw_only=True):
    """The alternative names of a subject."""

    dns: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()
    addresses: tuple[bytes, ...] = ()


class Subtrees(Struct):
    """The names that a certificate permits, or those that it excludes."""

    dns: list[str] = field(default_factory=list)
    emails: list[str] = field(default_factory=list)
    uris: list[str] = field(default_factory=list)
    networks: list[Network] = field(default_factory=list)


class Mailbox(NamedTuple):
    local: str
    domain: str

    def __str__(self) -> str:
        return f"{self.local}@{self.domain}"


def is_ascii(content: bytes) -> bool:
    return content.isascii()


def domain_is_valid(name: str, *, is_constraint: bool) -> bool:
    """Return whether a name has labels that are not empty. A constraint may begin with a period."""
    if is_constraint and len(name) > 1:
        name = name.removeprefix(".")
    return not name or _LABELS.fullmatch(name) is not None


def mailbox(text: str) -> Mailbox | None:
    """Parse an address of mail; None if it is invalid."""
    if quoted := _QUOTED.match(text):
        local, rest = _ESCAPE.sub(r"\1", quoted[1]), text[quoted.end() :]
    elif atoms := _ATOMS.match(text):
        local, rest = _ESCAPE.sub(r"\1", atoms[0]), text[atoms.end() :]
        if local.startswith(".") or local.endswith(".") or ".." in local:
            return None
    else:
        return None
    domain = rest[1:]
    if not rest.startswith("@") or (domain and not _LABELS.fullmatch(domain)):
        return None
    return Mailbox(local, domain)


# --- searching


class _DomainSet:
    """The subtrees of names, sorted by their labels from the last to the first."""

    def __init__(self, subtrees: Sequence[str], *, is_permitted: bool) -> None:
        self._all = "" in subtrees
        self._sorted: list[str] = []
        for subtree in sorted(subtrees, key=_order):
            if not self._sorted or not _contains(self._sorted[-1], subtree):
                self._sorted.append(subtree)
        self._keys = [*map(_order, self._sorted)]
        excluded = [] if is_permitted else [subtree.lower() for subtree in self._sorted]
        self._parents = {parent: name for name in excluded if (parent := _without_first_label(name))}
        """By parent: an excluded name that the wildcard of the parent covers."""

    def find(self, name: str) -> str | None:
        """Return the subtree that contains a name."""
        if self._all:
            return ""
        if (subtree := _nearest(self._sorted, self._keys, _order(name), partial(_holds, name))) is not None:
            return subtree
        return self._parents.get(_without_first_label(name.lower())) if name.startswith("*") else None


def _holds(name: str, subtree: str) -> bool:
    return _contains(subtree, name)


def _nearest(
    values: Sequence[Value], keys: Sequence[bytes], key: bytes, contains: Callable[[Value], bool]
) -> Value | None:
    """Return the value with this key, or the one before its place if it contains it."""
    index = bisect_left(keys, key)
    if index < len(keys) and keys[index] == key:
        return values[index]
    if not values:
        return None
    before = values[max(index - 1, 0)]
    return before if contains(before) else None


def _order(name: str) -> bytes:
    """Return a key by which a name follows its parents; the period is the smallest character."""
    return name[::-1].lower().replace(".", "\0").encode()


def _contains(subtree: str, name: str) -> bool:
    if not name.lower().endswith(subtree.lower()):
        return False
    is_whole = subtree.startswith(".") or len(subtree) == len(name)
    return is_whole or name[-len(subtree) - 1] == "."


def _without_first_label(name: str) -> str:
    """Return the rest with its period; "" for a single label."""
    _, period, rest = name.partition(".")
    return period + rest


class _NetworkSet:
    def __init__(self, networks: Sequence[Network]) -> None:
        self._by_size = {
            size: _prune([network for network in networks if len(network[0]) == size]) for size in (4, 16)
        }
        self._keys = {size: [base for base, _ in sorted_] for size, sorted_ in self._by_size.items()}

    def find(self, address: bytes) -> str | None:
        """Return the network that contains an address."""
        networks, keys = self._by_size[len(address)], self._keys[len(address)]
        network = _nearest(networks, keys, address, partial(_address_is_in, address))
        return None if network is None else network_text(*network)


def _prune(networks: list[Network]) -> list[Network]:
    pruned: list[Network] = []
    for network in sorted(networks):
        address, mask = network
        last = bytes(byte | ~bits & 0xFF for byte, bits in zip(address, mask, strict=True))
        if not pruned or not (_network_holds(pruned[-1], address) and _network_holds(pruned[-1], last)):
            pruned.append(network)
    return pruned


def _address_is_in(address: bytes, network: Network) -> bool:
    return _network_holds(network, address)


def _network_holds(network: Network, address: bytes) -> bool:
    base, mask = network
    if (short := packed_ipv4(base)) is not None:
        base, mask = short, mask[-4:]
    address = packed_ipv4(address) or address
    if len(base) != len(address):
        return False
    bits = int.from_bytes(mask)
    return int.from_bytes(base) & bits == int.from_bytes(address) & bits


class _MailboxSet:
    """Whole addresses of mail, and the domains of others."""

    def __init__(self, subtrees: Sequence[str], *, is_permitted: bool) -> None:
        mailboxes = (mailbox(subtree) for subtree in subtrees if "@" in subtree)
        self._mailboxes = {Mailbox(parsed.local, parsed.domain.lower()) for parsed in mailboxes if parsed}
        domains = [subtree for subtree in subtrees if "@" not in subtree]
        self._domains = _DomainSet(domains, is_permitted=is_permitted)

    def find(self, address: Mailbox) -> str | None:
        return str(address) if address in self._mailboxes else self._domains.find(address.domain)


# --- checking


class ChainLink(NamedTuple):
    """What one certificate of a chain says of names."""

    names: Names | None
    """None without the extension."""
    permitted: Subtrees | None
    excluded: Subtrees | None
    """None without name constraints."""


class _Constraint:
    """The constraints of one certificate, which is at `depth` of the chain."""

    def __init__(self, depth: int, permitted: Subtrees, excluded: Subtrees) -> None:
        self.depth = depth
        self._networks = _Rule(
            "IP address", _find_network(permitted.networks), _find_network(excluded.networks)
        )
        self._dns = _Rule(
            "DNS name",
            _find_domain(permitted.dns, is_permitted=True),
            _find_domain(excluded.dns, is_permitted=False),
        )
        self._uris = _Rule(
            "URI",
            _find_domain(permitted.uris, is_permitted=True),
            _find_domain(excluded.uris, is_permitted=False),
        )
        self._emails = _Rule(
            "email address",
            _find_mailbox(permitted.emails, is_permitted=True),
            _find_mailbox(excluded.emails, is_permitted=False),
        )

    def problems(
        self, names: Names, uris: Sequence[tuple[str, str]], emails: Sequence[Mailbox]
    ) -> Iterator[str]:
        for address in names.addresses:
            yield self._networks.problem(address, address_text(address))
        for name in names.dns:
            if not domain_is_valid(name, is_constraint=False):
                yield f"x509: cannot parse dnsName {gotext.quote(name)}"
            yield self._dns.problem(name, name)
        for text, domain in uris:
            if not domain_is_valid(domain, is_constraint=False):
                yield f"x509: internal error: URI SAN {gotext.quote(text)} failed to parse"
            yield self._uris.problem(domain, text)
        for email in emails:
            yield self._emails.problem(email, str(email))


class _Rule(Generic[Value]):
    """The names of one type that are permitted, and those that are excluded; None without such constraints."""

    def __init__(self, name: str, permitted: "_Find[Value] | None", excluded: "_Find[Value] | None") -> None:
        self._name = name
        self._permitted = permitted
        self._excluded = excluded

    def problem(self, value: Value, text: str) -> str:
        """Return why a name is not allowed; "" if it is."""
        if self._permitted is not None and self._permitted(value) is None:
            return f"{self._name} {gotext.quote(text)} is not permitted by any constraint"
        if self._excluded is not None and (subtree := self._excluded(value)) is not None:
            return f"{self._name} {gotext.quote(text)} is excluded by constraint {gotext.quote(subtree)}"
        return ""


def _find_domain(subtrees: Sequence[str], *, is_permitted: bool) -> "_Find[str] | None":
    return _DomainSet(subtrees, is_permitted=is_permitted).find if subtrees else None


def _find_network(networks: Sequence[Network]) -> "_Find[bytes] | None":
    return _NetworkSet(networks).find if networks else None


def _find_mailbox(subtrees: Sequence[str], *, is_permitted: bool) -> "_Find[Mailbox] | None":
    return _MailboxSet(subtrees, is_permitted=is_permitted).find if subtrees else None


def chain_problem(chain: Sequence[ChainLink]) -> str:
    """Return why the names in a chain, from the leaf to the root, are not allowed; "" if they are."""
    constraints = [
        _Constraint(depth, link.permitted, link.excluded)
        for depth, link in enumerate(chain)
        if link.permitted is not None and link.excluded is not None
    ]
    for depth, link in enumerate(chain):
        above = [constraint for constraint in constraints if constraint.depth > depth]
        if link.names is None or not above:
            continue
        try:
            uris = [(text, _uri_domain(text)) for text in link.names.uris]
            emails = [_parsed_mailbox(text) for text in link.names.emails]
        except CertificateError as error:
            return str(error)
        for constraint in above:
            if problem := next(filter(None, constraint.problems(link.names, uris, emails)), ""):
                return problem
    return ""


def _uri_domain(text: str) -> str:
    quoted, host = gotext.quote(text), uri.host(text)
    domain = host.lower()
    if not domain:
        raise CertificateError(f"URI with empty host ({quoted}) cannot be matched against constraints")
    if ":" in domain and not domain.endswith("]"):
        domain = host.rpartition(":")[0].removeprefix("[").removesuffix("]")
    try:
        ip_address(domain)
    except ValueError:
        is_address = domain.startswith("[") and domain.endswith("]")
    else:
        is_address = True
    if is_address:
        raise CertificateError(f"URI with IP ({quoted}) cannot be matched against constraints")
    return domain


def _parsed_mailbox(text: str) -> Mailbox:
    parsed = mailbox(text)
    if parsed is None:
        raise CertificateError(f"cannot parse rfc822Name {gotext.quote(text)}")
    return Mailbox(parsed.local, parsed.domain.lower())
