"""What a token of a service account says: whose it is, for whom, how long, and what it is bound to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from apiserver.authn.tokens import AUTHENTICATED
from apiserver.rest.call import User
from apiserver.storage.stored import Tree

LEEWAY_SECONDS = 60.0
"""How far apart the clocks of two servers may be."""
PREFIX = "system:serviceaccount:"
_EXTRA = "authentication.kubernetes.io/"


@dataclass(frozen=True, slots=True)
class Reference:
    """An object as a token names it."""

    name: str
    uid: str

    @classmethod
    def of(cls, tree: Tree) -> "Reference":
        return cls(tree["metadata"]["name"], tree["metadata"].get("uid", ""))

    @classmethod
    def read(cls, claim: Any) -> "Reference | None":
        return cls(claim.get("name", ""), claim.get("uid", "")) if isinstance(claim, dict) else None

    def claim(self) -> Mapping[str, str]:
        return {name: value for name, value in (("name", self.name), ("uid", self.uid)) if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A service account, and what a token of it is bound to."""

    namespace: str
    account: Reference
    pod: Reference | None = None
    secret: Reference | None = None
    node: Reference | None = None

    @classmethod
    def read(cls, claims: Mapping[str, Any]) -> "Account":
        private = claims.get("kubernetes.io")
        own: Mapping[str, Any] = private if isinstance(private, dict) else {}
        return cls(
            namespace=str(own.get("namespace", "")),
            account=Reference.read(own.get("serviceaccount")) or Reference("", ""),
            pod=Reference.read(own.get("pod")),
            secret=Reference.read(own.get("secret")),
            node=Reference.read(own.get("node")),
        )

    def claim(self) -> Mapping[str, Any]:
        bound = {"node": self.node, "pod": self.pod, "secret": self.secret}
        named = {name: reference.claim() for name, reference in bound.items() if reference is not None}
        whole = {"namespace": self.namespace, **named, "serviceaccount": self.account.claim()}
        return dict(sorted(whole.items()))

    @property
    def username(self) -> str:
        return f"{PREFIX}{self.namespace}:{self.account.name}"

    def user(self, token_id: str) -> User:
        found = {
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
            extra={f"{_EXTRA}{name}": (value,) for name, value in found.items() if value},
        )


def groups(namespace: str) -> tuple[str, ...]:
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


def split_username(name: str) -> tuple[str, str] | None:
    """Namespace and name of the service account that a user's name stands for; None if it is another user."""
    if not name.startswith(PREFIX):
        return None
    namespace, _, account = name.removeprefix(PREFIX).partition(":")
    return (namespace, account) if namespace and account and ":" not in account else None


def time_problem(claims: Mapping[str, Any], now: datetime) -> str:
    """Why a token is not good at this time; "" if it is."""
    moment = now.timestamp()
    if _number(claims, "nbf") > moment + LEEWAY_SECONDS:
        return "service account token is not valid yet"
    if "exp" in claims and _number(claims, "exp") < moment - LEEWAY_SECONDS:
        return "service account token has expired"
    if _number(claims, "iat") > moment + LEEWAY_SECONDS:
        return "service account token is issued in the future"
    return ""


def audiences(claims: Mapping[str, Any]) -> Sequence[str]:
    found = claims.get("aud", ())
    return [found] if isinstance(found, str) else [str(one) for one in found]


def _number(claims: Mapping[str, Any], name: str) -> float:
    found = claims.get(name, 0)
    return float(found) if isinstance(found, int | float) else 0.0
