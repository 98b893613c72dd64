"""The claims of a service account token: account, audiences, lifetime and bound object."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeGuard

from msgspec import Struct

from mockube.apimachinery import gotext, names
from mockube.apimachinery.tree import Tree
from mockube.apiserver.authn.authenticators import BadToken
from mockube.apiserver.user import AUTHENTICATED, SERVICE_ACCOUNT, User

from . import jwt
from .jwt import Claims
from .keys import ServiceAccountKeys

LEEWAY_SECONDS = 60.0
"""The allowed clock skew between two servers."""
_EXTRA = "authentication.kubernetes.io/"


class Reference(Struct, frozen=True):
    """A reference to an object in a token."""

    name: str
    uid: str

    @classmethod
    def of(cls, tree: Tree) -> "Reference":
        return cls(tree["metadata"]["name"], tree["metadata"].get("uid", ""))

    @classmethod
    def read(cls, claim: Any) -> "Reference | None":
        return cls(claim.get("name") or "", claim.get("uid") or "") if isinstance(claim, dict) else None

    def claim(self) -> Mapping[str, str]:
        return {name: value for name, value in (("name", self.name), ("uid", self.uid)) if value}


class Account(Struct, frozen=True, kw_only=True):
    """A service account, and the objects that its token is bound to."""

    namespace: str
    account: Reference
    pod: Reference | None = None
    secret: Reference | None = None
    node: Reference | None = None

    @classmethod
    def read(cls, claims: Claims) -> "Account":
        """Return the account in claims that were verified."""
        private = claims.get("kubernetes.io")
        own: Mapping[str, Any] = private if isinstance(private, dict) else {}
        return cls(
            namespace=own.get("namespace") or "",
            account=Reference.read(own.get("serviceaccount")) or Reference("", ""),
            pod=Reference.read(own.get("pod")),
            secret=Reference.read(own.get("secret")),
            node=Reference.read(own.get("node")),
        )

    @classmethod
    def of_user(cls, user: User) -> "Account | None":
        """Return the account that was authenticated as a user, with the pod of its token; None if the user has no uid of one."""
        names = split_username(user.name)
        if names is None or not user.uid:
            return None
        namespace, name = names
        pod_names, pod_uids = (user.extra.get(f"{_EXTRA}{each}", ()) for each in ("pod-name", "pod-uid"))
        pod = Reference(pod_names[0], pod_uids[0]) if pod_names and pod_uids else None
        return cls(namespace=namespace, account=Reference(name, user.uid), pod=pod)

    def claim(self) -> Mapping[str, Any]:
        bound = {"node": self.node, "pod": self.pod, "secret": self.secret}
        named = {name: reference.claim() for name, reference in bound.items() if reference is not None}
        private_claims = {"namespace": self.namespace, **named, "serviceaccount": self.account.claim()}
        return dict(sorted(private_claims.items()))

    @property
    def username(self) -> str:
        return f"{SERVICE_ACCOUNT}{self.namespace}:{self.account.name}"

    def user(self, token_id: str) -> User:
        extra = {
            "credential-id": f"JTI={token_id}" if token_id else "",
            "pod-name": self.pod.name if self.pod else "",
            "pod-uid": self.pod.uid if self.pod else "",
            "node-name": self.node.name if self.node else "",
            "node-uid": self.node.uid if self.node else "",
        }
        return User(
            name=self.username,
            uid=self.account.uid,
            groups=(*groups(self.namespace), AUTHENTICATED),
            extra={f"{_EXTRA}{name}": (value,) for name, value in extra.items() if value},
        )


def groups(namespace: str) -> tuple[str, ...]:
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


def split_username(name: str) -> tuple[str, str] | None:
    """Return the namespace and name of the service account in a user name; None if it is another user."""
    if not name.startswith(SERVICE_ACCOUNT):
        return None
    namespace, _, account = name.removeprefix(SERVICE_ACCOUNT).partition(":")
    is_valid = not (names.check_dns1123_label(namespace) or names.check_dns1123_subdomain(account))
    return (namespace, account) if is_valid else None


def verified_claims(token: str, keys: ServiceAccountKeys, issuers: Collection[str]) -> Claims | None:
    """Return the claims of a token of one of the issuers; None if it has another issuer or another format."""
    claims = jwt.verify(keys, token) if jwt.issuer(token) in issuers else None
    if claims is not None and (problem := _type_problem(claims)):
        raise BadToken(problem)
    return claims


def _type_problem(claims: Claims) -> str:
    """Return go-jose's error for a claim of a wrong type; "" if there is none."""
    for name in ("iss", "sub", "jti"):
        if problem := _string_problem(claims.get(name)):
            return problem
    for name in ("exp", "nbf", "iat"):
        if claims.get(name) is not None and not _is_number(claims[name]):
            return "go-jose/go-jose/jwt: expected number value to unmarshal NumericDate"
    audience = claims.get("aud", "")
    if not isinstance(audience, str) and not (
        isinstance(audience, list) and all(isinstance(item, str) for item in audience)
    ):
        return "go-jose/go-jose/jwt: expected string or array value to unmarshal to Audience"
    return _private_problem(claims.get("kubernetes.io"))


def _private_problem(private: Any) -> str:
    if private is None:
        return ""
    if not isinstance(private, dict):
        return f"json: cannot unmarshal {_go_kind(private)} into Go value of type serviceaccount.kubernetes"
    if problem := _string_problem(private.get("namespace")):
        return problem
    for name in ("serviceaccount", "pod", "secret", "node"):
        reference = private.get(name)
        if reference is None:
            continue
        if not isinstance(reference, dict):
            return f"json: cannot unmarshal {_go_kind(reference)} into Go value of type serviceaccount.ref"
        if problem := _string_problem(reference.get("name")) or _string_problem(reference.get("uid")):
            return problem
    return ""


def _string_problem(value: Any) -> str:
    if value is None or isinstance(value, str):
        return ""
    return f"json: cannot unmarshal {_go_kind(value)} into Go value of type string"


def _go_kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, dict) else "array" if isinstance(value, list) else "number"


def check_time(claims: Claims, now: datetime) -> None:
    seconds = now.timestamp()
    if _number(claims, "nbf") > seconds + LEEWAY_SECONDS:
        raise BadToken("service account token is not valid yet")
    if claims.get("exp") is not None and _number(claims, "exp") < seconds - LEEWAY_SECONDS:
        raise BadToken("service account token has expired")
    if _number(claims, "iat") > seconds + LEEWAY_SECONDS:
        raise BadToken("service account token is issued in the future")


def audiences(claims: Claims) -> Sequence[str]:
    """Return the audiences in claims that were verified."""
    audience: str | Sequence[str] = claims.get("aud", ())
    return [audience] if isinstance(audience, str) else audience


def shared_audiences(
    claims: Claims, server_audiences: Sequence[str], target_audiences: Sequence[str]
) -> Sequence[str]:
    """Return the target audiences for which a token is valid. A token without audiences is valid for the server's."""
    token_audiences = audiences(claims) or server_audiences
    shared = [audience for audience in target_audiences if audience in token_audiences]
    if not shared:
        wrong, target = gotext.quote_list(token_audiences), gotext.quote_list(target_audiences)
        raise BadToken(f"token audiences {wrong} is invalid for the target audiences {target}")
    return shared


def _number(claims: Claims, name: str) -> float:
    value = claims.get(name)
    return float(value) if _is_number(value) else 0.0


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
