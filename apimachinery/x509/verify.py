"""Verification of a certificate: chains to trusted certificates are built, and each of them is checked."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from mockube.apimachinery import gotext

from . import constraints
from .certificate import Certificate
from .constraints import ChainLink
from .der import CertificateError
from .extensions import SUBJECT_ALTERNATIVE_NAMES
from .hostnames import host_problem
from .keys import signature_problem
from .policies import ChainPolicies, policies_are_valid
from .pool import CertificatePool

SERVER_AUTH: Final = "1.3.6.1.5.5.7.3.1"
CLIENT_AUTH: Final = "1.3.6.1.5.5.7.3.2"
_ANY_USAGE: Final = "2.5.29.37.0"
MAX_SIGNATURES: Final = 100
"""The maximum number of certificates that are considered as issuers while chains are built."""
_TOO_MANY_SIGNATURES: Final = "x509: signature check attempts limit reached while verifying certificate chain"
_NOT_AN_AUTHORITY: Final = "x509: invalid signature: parent certificate cannot sign this kind of certificate"
Chain = tuple[Certificate, ...]
"""From a leaf to a trusted certificate."""


class Options(Struct, frozen=True, kw_only=True):
    roots: CertificatePool
    intermediates: CertificatePool
    now: datetime
    usage: str = SERVER_AUTH
    host: str = ""
    """The name or address that the certificate must have; "" for any."""


def verify(leaf: Certificate, options: Options) -> list[Chain]:
    """Return the valid chains, which are at least one, or raise CertificateError."""
    problem = _validity_problem(leaf, (), options.now, is_intermediate=False)
    if not problem and options.host:
        problem = host_problem(leaf, options.host)
    if problem:
        raise CertificateError(problem)
    if leaf in options.roots:
        chains: list[Chain] = [(leaf,)]
    else:
        chains, problem = _Search(options).build((leaf,))
        if problem:
            raise CertificateError(problem)
    return _valid_chains(chains, options.usage)


def _valid_chains(chains: Sequence[Chain], usage: str) -> list[Chain]:
    valid, without_policy, without_usage, name_problem = list[Chain](), 0, 0, ""
    for chain in chains:
        if not _has_policy(chain):
            without_policy += 1
        elif not _has_usage(chain, usage):
            without_usage += 1
        elif problem := constraints.chain_problem([_link(certificate) for certificate in chain]):
            name_problem = name_problem or problem
        else:
            valid.append(chain)
    if valid:
        return valid
    if name_problem:
        raise CertificateError(
            f"x509: a root or intermediate certificate is not authorized to sign for this name: {name_problem}"
        )
    if without_usage and not without_policy:
        raise CertificateError("x509: certificate specifies an incompatible key usage")
    usage_detail = f"{without_usage} candidate chains with incompatible key usage, " if without_usage else ""
    detail = f"{usage_detail}{without_policy} candidate chains with invalid policies"
    raise CertificateError(f"x509: no valid chains built: {detail}")


def _has_usage(chain: Chain, usage: str) -> bool:
    usages = (certificate.extensions.usages for certificate in chain)
    return all(not allowed or _ANY_USAGE in allowed or usage in allowed for allowed in usages)


def _has_policy(chain: Chain) -> bool:
    return policies_are_valid(
        [ChainPolicies(link.extensions.policies, link.issuer == link.subject) for link in chain]
    )


def _link(certificate: Certificate) -> ChainLink:
    extensions = certificate.extensions
    names = extensions.names if extensions.has_names else None
    return ChainLink(names, extensions.permitted, extensions.excluded)


class _Search:
    """Builds chains, with a limit of the candidates that it considers."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._considered = 0

    def build(self, chain: Chain) -> tuple[list[Chain], str]:
        """Return the chains that begin with `chain`, or the problem of the last candidate whose signature is right."""
        chains, problem, hint = list[Chain](), "", ""
        options, child = self._options, chain[-1]
        candidates = [
            *((root, True) for root in options.roots.possible_issuers(child)),
            *((other, False) for other in options.intermediates.possible_issuers(child)),
        ]
        for candidate, is_root in candidates:
            self._considered += 1
            if self._considered > MAX_SIGNATURES:
                problem = _TOO_MANY_SIGNATURES
                break
            if not candidate.key.key_type or _is_in_chain(candidate, chain):
                continue
            refusal = _issuer_problem(child, candidate)
            if not refusal:
                problem = refusal = _validity_problem(
                    candidate, chain, options.now, is_intermediate=not is_root
                )
            if refusal:
                hint = hint or _hint(refusal, candidate)
            elif is_root:
                chains.append((*chain, candidate))
            else:
                child_chains, problem = self.build((*chain, candidate))
                chains += child_chains
                if problem == _TOO_MANY_SIGNATURES:
                    break
        if chains:
            return chains, ""
        return chains, problem or f"x509: certificate signed by unknown authority{hint}"


def _hint(problem: str, candidate: Certificate) -> str:
    name = candidate.subject_name.common_name or next(iter(candidate.subject_name.organizations), "")
    quoted = gotext.quote(name or f"serial:{candidate.serial}")
    reason = gotext.quote(problem)
    return f" (possibly because of {reason} while trying to verify candidate authority certificate {quoted})"


def _is_in_chain(candidate: Certificate, chain: Chain) -> bool:
    """Return whether a certificate with the same subject, key and alternative names is in a chain."""
    names = candidate.extensions.values.get(SUBJECT_ALTERNATIVE_NAMES)
    for certificate in chain:
        if certificate.subject == candidate.subject and certificate.raw_key == candidate.raw_key:
            others = certificate.extensions.values.get(SUBJECT_ALTERNATIVE_NAMES)
            if names == others:
                return True
            if names is None or others is None:
                return False
    return False


def _issuer_problem(child: Certificate, issuer: Certificate) -> str:
    """Return why a certificate did not sign another one; "" if it did."""
    extensions = issuer.extensions
    is_authority = extensions.is_authority if extensions.has_basic_constraints else issuer.version < 3
    if not is_authority or not extensions.may_sign:
        return _NOT_AN_AUTHORITY
    return signature_problem(child.algorithm, child.signed, child.signature, issuer.key)


def _validity_problem(certificate: Certificate, chain: Chain, now: datetime, *, is_intermediate: bool) -> str:
    """Return why a certificate cannot be used after a chain, or as a leaf if the chain is empty; "" if it can."""
    extensions = certificate.extensions
    if extensions.has_unhandled_critical:
        return "x509: unhandled critical extension"
    comparison = ""
    if now < certificate.not_before:
        comparison = f"before {_rfc3339(certificate.not_before)}"
    elif now > certificate.not_after:
        comparison = f"after {_rfc3339(certificate.not_after)}"
    if comparison:
        current = f"current time {_rfc3339(now.astimezone(UTC))} is {comparison}"
        return f"x509: certificate has expired or is not yet valid: {current}"
    if is_intermediate and not (extensions.has_basic_constraints and extensions.is_authority):
        return "x509: certificate is not authorized to sign other certificates"
    limit = extensions.max_path_length
    if limit is not None and len(chain) - 1 > limit:
        return "x509: too many intermediates for path length constraint"
    return ""


def _rfc3339(time: datetime) -> str:
    return time.replace(microsecond=0).isoformat().replace("+00:00", "Z")
