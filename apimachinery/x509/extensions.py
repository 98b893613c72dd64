"""The extensions of a certificate: what each says, and which critical ones are not understood."""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery import gotext, uri

from . import der
from .addresses import parse_address
from .constraints import Names, Subtrees, domain_is_valid, is_ascii, mailbox
from .der import CertificateError, Reader
from .policies import PolicyRules

SUBJECT_ALTERNATIVE_NAMES: Final = "2.5.29.17"
_EMAIL, _DNS, _URI, _IP = 1, 2, 6, 7
"""The types of names that are understood."""
_CERT_SIGN: Final = 5
_KEY_USAGES: Final = 9


class Extension(Struct, frozen=True):
    identifier: str
    is_critical: bool
    value: bytes


class Extensions(Struct):
    """What the extensions say; a handler of each sets its fields."""

    values: dict[str, bytes] = field(default_factory=dict)
    names: Names = Names()
    permitted: Subtrees | None = None
    """The names that the certificates below must have; None without name constraints."""
    excluded: Subtrees | None = None
    key_usage: int = 0
    """The bits of the key usage; 0 without that extension."""
    usages: tuple[str, ...] = ()
    """The extended key usages."""
    has_basic_constraints: bool = False
    is_authority: bool = False
    max_path_length: int | None = None
    subject_key: bytes = b""
    authority_key: bytes = b""
    policies: PolicyRules = field(default_factory=PolicyRules)
    has_unhandled_critical: bool = False

    @property
    def has_names(self) -> bool:
        return SUBJECT_ALTERNATIVE_NAMES in self.values

    @property
    def may_sign(self) -> bool:
        return not self.key_usage or bool(self.key_usage & 1 << _CERT_SIGN)


def parse_extensions(element: bytes) -> Extensions:
    extensions = Extensions()
    parsed_extensions: list[Extension] = []
    reader = Reader(element).nested_reader(der.SEQUENCE, "x509: malformed extensions")
    while reader:
        extension = _parse_extension(reader.nested_reader(der.SEQUENCE, "x509: malformed extension"))
        if extension.identifier in extensions.values:
            quoted = gotext.quote(extension.identifier)
            raise CertificateError(f"x509: certificate contains duplicate extension with OID {quoted}")
        extensions.values[extension.identifier] = extension.value
        parsed_extensions.append(extension)
    for extension in parsed_extensions:
        handle = _HANDLERS.get(extension.identifier)
        is_handled = handle is not None and handle(extensions, extension)
        extensions.has_unhandled_critical |= extension.is_critical and not is_handled
    return extensions


def _parse_extension(reader: Reader) -> Extension:
    identifier = reader.identifier("x509: malformed extension OID field")
    is_critical = reader.peek(der.BOOLEAN) and reader.boolean("x509: malformed extension critical field")
    value = reader.content(der.OCTET_STRING, "x509: malformed extension value field")
    return Extension(identifier, is_critical, value)


# --- one function for each extension, which returns whether all of it is understood


def _key_usage(extensions: Extensions, extension: Extension) -> bool:
    bits = Reader(extension.value).bits("x509: invalid key usage")
    extensions.key_usage = sum(1 << index for index in range(_KEY_USAGES) if bits.bit(index))
    return True


def _basic_constraints(extensions: Extensions, extension: Extension) -> bool:
    problem = "x509: invalid basic constraints"
    fields = Reader(extension.value).nested_reader(der.SEQUENCE, problem)
    extensions.is_authority = fields.peek(der.BOOLEAN) and fields.boolean(problem)
    extensions.max_path_length = fields.integer(problem, bits=64) if fields.peek(der.INTEGER) else None
    if extensions.max_path_length is not None and extensions.max_path_length < 0:
        raise CertificateError(problem)
    extensions.has_basic_constraints = True
    return True


def _alternative_names(extensions: Extensions, extension: Extension) -> bool:
    names: dict[int, list[str]] = {_EMAIL: [], _DNS: [], _URI: []}
    addresses: list[bytes] = []
    reader = Reader(extension.value).nested_reader(der.SEQUENCE, "x509: invalid subject alternative names")
    while reader:
        tag, content = reader.any("x509: invalid subject alternative name")
        kind = tag ^ der.CONTEXT
        if kind == _IP:
            if len(content) not in (4, 16):
                raise CertificateError(f"x509: cannot parse IP address of length {len(content)}")
            addresses.append(content)
        elif kind in names:
            names[kind].append(_name(kind, content))
    extensions.names = Names(
        dns=tuple(names[_DNS]),
        emails=tuple(names[_EMAIL]),
        uris=tuple(names[_URI]),
        addresses=tuple(addresses),
    )
    return bool(addresses or any(names.values()))


_MALFORMED_NAMES: Final = {
    _EMAIL: "x509: SAN rfc822Name is malformed",
    _DNS: "x509: SAN dNSName is malformed",
    _URI: "x509: SAN uniformResourceIdentifier is malformed",
}


def _name(kind: int, content: bytes) -> str:
    if not is_ascii(content):
        raise CertificateError(_MALFORMED_NAMES[kind])
    name = content.decode("ascii")
    if kind == _URI:
        problem = uri.parse_problem(name)
        if not problem and not domain_is_valid(uri.host(name), is_constraint=False):
            problem = "invalid domain"
        if problem:
            raise CertificateError(f"x509: cannot parse URI {gotext.quote(name)}: {problem}")
    return name


def _name_constraints(extensions: Extensions, extension: Extension) -> bool:
    problem = "x509: invalid NameConstraints extension"
    outer = Reader(extension.value)
    fields = outer.nested_reader(der.SEQUENCE, problem)
    subtrees = [fields.optional(der.CONTEXT | der.CONSTRUCTED | number, problem) for number in (0, 1)]
    if outer or fields:
        raise CertificateError(problem)
    if not any(subtrees):
        raise CertificateError("x509: empty name constraints extension")
    extensions.permitted, extensions.excluded, is_handled = Subtrees(), Subtrees(), True
    for target, encoded in zip((extensions.permitted, extensions.excluded), subtrees, strict=True):
        reader = Reader(encoded or b"")
        while reader:
            tag, content = reader.nested_reader(der.SEQUENCE, problem).any(problem)
            is_handled &= _add_subtree(target, tag ^ der.CONTEXT, content)
    return is_handled


def _add_subtree(target: Subtrees, kind: int, content: bytes) -> bool:
    if kind == _IP:
        target.networks.append(_network(content))
        return True
    if kind not in _CONSTRAINT_NAMES:
        return False
    text = content.decode("latin-1")
    if not is_ascii(content):
        quoted = gotext.quote(content.decode("utf-8", "surrogateescape"))
        raise CertificateError(
            f"x509: invalid constraint value: x509: {quoted} cannot be encoded as an IA5String"
        )
    name, quoted = _CONSTRAINT_NAMES[kind], gotext.quote(text)
    if kind == _URI and parse_address(text) is not None:
        raise CertificateError(f"x509: failed to parse URI constraint {quoted}: cannot be IP address")
    is_mailbox = kind == _EMAIL and "@" in text
    if not (mailbox(text) if is_mailbox else domain_is_valid(text, is_constraint=True)):
        raise CertificateError(f"x509: failed to parse {name} constraint {quoted}")
    {_DNS: target.dns, _EMAIL: target.emails, _URI: target.uris}[kind].append(text)
    return True


_CONSTRAINT_NAMES: Final = {_DNS: "dnsName", _EMAIL: "rfc822Name", _URI: "URI"}


def _network(content: bytes) -> tuple[bytes, bytes]:
    """Return the address and the mask of a network."""
    if len(content) not in (8, 32):
        raise CertificateError(f"x509: IP constraint contained value of length {len(content)}")
    half = len(content) // 2
    mask = int.from_bytes(content[half:])
    zeros = (1 << half * 8) - 1 - mask
    if zeros & (zeros + 1):
        raise CertificateError(f"x509: IP constraint contained invalid mask {content[half:].hex()}")
    return content[:half], content[half:]


def _distribution_points(_: Extensions, extension: Extension) -> bool:
    point_problem = "x509: invalid CRL distribution point"
    points = Reader(extension.value).nested_reader(der.SEQUENCE, f"{point_problem}s")
    first = der.CONTEXT | der.CONSTRUCTED
    while points:
        name = points.nested_reader(der.SEQUENCE, point_problem).optional(first, point_problem)
        names = Reader(name).nested_reader(first, point_problem) if name is not None else Reader(b"")
        while names.peek(der.CONTEXT | _URI):
            names.content(der.CONTEXT | _URI, point_problem)
    return True


def _authority_key(extensions: Extensions, extension: Extension) -> bool:
    if extension.is_critical:
        raise CertificateError("x509: authority key identifier incorrectly marked critical")
    problem = "x509: invalid authority key identifier"
    fields = Reader(extension.value).nested_reader(der.SEQUENCE, problem)
    extensions.authority_key = fields.optional(der.CONTEXT, problem) or b""
    return True


def _subject_key(extensions: Extensions, extension: Extension) -> bool:
    if extension.is_critical:
        raise CertificateError("x509: subject key identifier incorrectly marked critical")
    extensions.subject_key = Reader(extension.value).content(
        der.OCTET_STRING, "x509: invalid subject key identifier"
    )
    return True


def _extended_key_usage(extensions: Extensions, extension: Extension) -> bool:
    problem = "x509: invalid extended key usages"
    reader, usages = Reader(extension.value).nested_reader(der.SEQUENCE, problem), list[str]()
    while reader:
        usages.append(reader.identifier(problem))
    extensions.usages = tuple(usages)
    return True


def _policies(extensions: Extensions, extension: Extension) -> bool:
    problem = "x509: invalid certificate policies"
    reader, policies = Reader(extension.value).nested_reader(der.SEQUENCE, problem), dict[bytes, None]()
    while reader:
        policy = reader.nested_reader(der.SEQUENCE, problem).content(der.OBJECT_IDENTIFIER, problem)
        if policy in policies or not _is_minimal_identifier(policy):
            raise CertificateError(problem)
        policies[policy] = None
    extensions.policies.policies = tuple(policies)
    return True


def _is_minimal_identifier(data: bytes) -> bool:
    """Return whether an identifier, whose numbers can be of any size, is encoded in the fewest bytes."""
    starts = (0, *(index + 1 for index, byte in enumerate(data) if byte < 0x80))
    return bool(data) and data[-1] < 0x80 and all(data[start : start + 1] != b"\x80" for start in starts)


def _policy_mappings(extensions: Extensions, extension: Extension) -> bool:
    problem = "x509: invalid policy mappings extension"
    reader, mappings = (
        Reader(extension.value).nested_reader(der.SEQUENCE, problem),
        list[tuple[bytes, bytes]](),
    )
    while reader:
        pair = reader.nested_reader(der.SEQUENCE, problem)
        issuer = pair.content(der.OBJECT_IDENTIFIER, problem)
        mappings.append((issuer, pair.content(der.OBJECT_IDENTIFIER, problem)))
    extensions.policies.mappings = tuple(mappings)
    return True


def _policy_constraints(extensions: Extensions, extension: Extension) -> bool:
    problem = "x509: invalid policy constraints extension"
    fields = Reader(extension.value).nested_reader(der.SEQUENCE, problem)
    if fields.peek(der.CONTEXT):
        extensions.policies.require_explicit = fields.integer(problem, tag=der.CONTEXT, bits=64)
    if fields.peek(der.CONTEXT | 1):
        extensions.policies.inhibit_mapping = fields.integer(problem, tag=der.CONTEXT | 1, bits=64)
    return True


def _inhibit_any_policy(extensions: Extensions, extension: Extension) -> bool:
    problem = "x509: invalid inhibit any policy extension"
    extensions.policies.inhibit_any = Reader(extension.value).integer(problem, bits=64)
    return True


def _authority_information(_: Extensions, extension: Extension) -> bool:
    """Check the addresses of the issuer's certificate, from which nothing is ever fetched."""
    if extension.is_critical:
        raise CertificateError("x509: authority info access incorrectly marked critical")
    problem = "x509: invalid authority info access"
    reader = Reader(extension.value).nested_reader(der.SEQUENCE, problem)
    while reader:
        description = reader.nested_reader(der.SEQUENCE, problem)
        description.identifier(problem)
        description.optional(der.CONTEXT | _URI, problem)
    return True


_HANDLERS: Final[Mapping[str, Callable[[Extensions, Extension], bool]]] = {
    "2.5.29.14": _subject_key,
    "2.5.29.15": _key_usage,
    SUBJECT_ALTERNATIVE_NAMES: _alternative_names,
    "2.5.29.19": _basic_constraints,
    "2.5.29.30": _name_constraints,
    "2.5.29.31": _distribution_points,
    "2.5.29.32": _policies,
    "2.5.29.33": _policy_mappings,
    "2.5.29.35": _authority_key,
    "2.5.29.36": _policy_constraints,
    "2.5.29.37": _extended_key_usage,
    "2.5.29.54": _inhibit_any_policy,
    "1.3.6.1.5.5.7.1.1": _authority_information,
}
