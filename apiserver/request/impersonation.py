"""Impersonation: a user makes a request as another user, if the authorizer allows it.

Kubernetes 1.36 has two kinds. A constrained mode needs two permissions, one to impersonate the user at all
(`impersonate:MODE`) and one to do so for this request (`impersonate-on:MODE:VERB`). The legacy mode needs the verb
`impersonate` alone. The modes are tried in upstream's order, and the legacy one last; if none allows the request, the
error is that of the first.
"""

from collections.abc import Callable, Mapping, Sequence
from string import ascii_letters, digits
from typing import Final, Protocol

from msgspec import Struct, field, structs
from msgspec.structs import replace

from mockube.apimachinery import errors, names, status, uri
from mockube.apimachinery.gotext import quote
from mockube.apimachinery.paths import Path
from mockube.apimachinery.status import Forbidden
from mockube.apiserver.authn.serviceaccount.claims import groups as account_groups
from mockube.apiserver.authn.serviceaccount.claims import split_username
from mockube.apiserver.authz.chain import Attributes, Authorization, Decision, DecisionAndReason, forbidden
from mockube.apiserver.metrics.access import ALLOWED, DENIED, Attempt, ImpersonationMetrics
from mockube.apiserver.user import ANONYMOUS, AUTHENTICATED, MASTERS, ImpersonatedUser, User

USER, GROUP, UID = "impersonate-user", "impersonate-group", "impersonate-uid"
EXTRA = "impersonate-extra-"
NODE_NAME = "authentication.kubernetes.io/node-name"
_NODE = "system:node:"
_NODES = "system:nodes"
_UNAUTHENTICATED = ANONYMOUS.groups[0]
MAX_USERS: Final = 10_000
"""Users whose last mode is cached."""
_WILDCARD_CHECK_SIZE = 4
"""The number of groups or extra values from which on a constrained mode first checks the permission for all (`*`)."""


class Impersonation(Struct, frozen=True, kw_only=True):
    """The user that the headers of a request name."""

    user: str
    groups: Sequence[str] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def has_only_username(self) -> bool:
        return not (self.groups or self.uid or self.extra)


def read(headers: Sequence[tuple[str, str]]) -> Impersonation | None:
    """Return the impersonation of headers with lower-case names; None if none is an Impersonate header."""
    user = next((value for name, value in headers if name == USER), "")
    uid = next((value for name, value in headers if name == UID), "")
    named = tuple(value for name, value in headers if name == GROUP)
    extra: dict[str, list[str]] = {}
    for name, value in headers:
        if name.startswith(EXTRA):
            extra.setdefault(uri.unescape(name.removeprefix(EXTRA)), []).append(value)
    if user:
        return Impersonation(user=user, groups=named, uid=uid, extra=extra)
    if named or uid or extra:
        raise status.BadRequest(f"requested {_as_go(named, uid, extra)} without impersonating a user name")
    return None


def required_rights(
    request: Attributes, impersonation: Impersonation, constraint: str
) -> Sequence[Attributes]:
    """Return what an impersonation needs, without the wildcards that may have allowed it; `request.user` is the authenticated user.

    `constraint` is the verb of the mode that allowed it, "" for the legacy one.
    """
    collector = _Collector([])
    mode = next(mode for mode in _MODES if constraint == ("" if mode.is_legacy else mode.verb))
    _Check(collector, mode, request).run(impersonation)
    return collector.required


class Impersonator:
    """Authorizes impersonation. As upstream, the mode that a user was last successful with is tried first.

    `constrained` is whether the constrained modes are tried; minors before 1.36 have only the legacy one.
    """

    def __init__(
        self,
        authorization: Authorization,
        metrics: ImpersonationMetrics,
        monotonic: Callable[[], float],
        *,
        constrained: bool = True,
    ) -> None:
        self._authorization = authorization
        self._metrics = metrics
        self._all_modes: Sequence[_Mode] = _MODES if constrained else _MODES[-1:]
        self._monotonic = monotonic
        self._last: dict[str, _Mode] = {}

    def impersonate(self, request: Attributes, impersonation: Impersonation) -> ImpersonatedUser:
        """Return the user that the request is made as, or raise Forbidden. `request.user` is the authenticated user."""
        began, authorizer = self._monotonic(), _TimedAuthorizer(self._authorization, self._monotonic)
        try:
            mode, impersonated = self._impersonate(authorizer, request, impersonation)
        except Forbidden:
            self._metrics.note(("", DENIED), self._monotonic() - began, authorizer.checks)
            raise
        self._metrics.note((mode.label, ALLOWED), self._monotonic() - began, authorizer.checks)
        return impersonated

    def _impersonate(
        self, authorizer: "_TimedAuthorizer", request: Attributes, impersonation: Impersonation
    ) -> "tuple[_Mode, ImpersonatedUser]":
        first: Forbidden | None = None
        name = request.user.name
        last = self._last.get(name)
        modes = self._all_modes
        if last is not None:
            modes = (last, *(mode for mode in modes if mode is not last))
        for mode in modes:
            if not mode.applies(impersonation, request.user):
                continue
            authorizer.mode = mode
            try:
                impersonated = _Check(authorizer, mode, request).run(impersonation)
            except Forbidden as error:
                first = first or error
                continue
            if mode is not last:
                self._cache_mode(name, mode)
            return mode, impersonated
        assert first is not None, "the legacy mode applies always"
        raise first

    def _cache_mode(self, name: str, mode: "_Mode") -> None:
        self._last.pop(name, None)
        if len(self._last) >= MAX_USERS:
            del self._last[next(iter(self._last))]
        self._last[name] = mode


class _Mode(Struct, frozen=True):
    name: str
    applies: Callable[[Impersonation, User], bool]

    @property
    def is_legacy(self) -> bool:
        return not self.name

    @property
    def label(self) -> str:
        """The name of the mode in metrics."""
        return self.name or "legacy"

    @property
    def verb(self) -> str:
        return "impersonate" if self.is_legacy else f"impersonate:{self.name}"


def _is_own_node(impersonation: Impersonation, requestor: User) -> bool:
    """Return whether a service account impersonates the node that its token is bound to."""
    node = _node_name(impersonation.user) if impersonation.has_only_username else ""
    is_account = split_username(requestor.name) is not None
    return bool(node) and is_account and list(requestor.extra.get(NODE_NAME, ())) == [node]


def _is_node(impersonation: Impersonation, _requestor: User) -> bool:
    return impersonation.has_only_username and bool(_node_name(impersonation.user))


def _is_account(impersonation: Impersonation, _requestor: User) -> bool:
    return impersonation.has_only_username and split_username(impersonation.user) is not None


def _is_other(impersonation: Impersonation, _requestor: User) -> bool:
    return not _node_name(impersonation.user) and split_username(impersonation.user) is None


_OWN_NODE = _Mode("associated-node", _is_own_node)
_MODES: Final = (
    _OWN_NODE,
    _Mode("arbitrary-node", _is_node),
    _Mode("serviceaccount", _is_account),
    _Mode("user-info", _is_other),
    _Mode("", lambda _impersonation, _requestor: True),
)


class _Permissions(Protocol):
    def require(self, attributes: Attributes) -> None: ...

    def is_allowed(self, attributes: Attributes) -> bool: ...


class _Collector(Struct, frozen=True):
    """Collects the permissions that a check needs. It allows no wildcard, so that each one is listed."""

    required: list[Attributes]

    def require(self, attributes: Attributes) -> None:
        self.required.append(attributes)

    def is_allowed(self, _attributes: Attributes) -> bool:
        return False


class _TimedAuthorizer:
    """Checks permissions, and counts the decisions."""

    def __init__(self, authorization: Authorization, monotonic: Callable[[], float]) -> None:
        self._authorization = authorization
        self._monotonic = monotonic
        self.mode = _MODES[-1]
        self.checks: list[tuple[Attempt, float]] = []

    def require(self, attributes: Attributes) -> None:
        decision, reason = self._decide(attributes)
        if decision is not Decision.ALLOW:
            raise forbidden(attributes, reason)

    def is_allowed(self, attributes: Attributes) -> bool:
        return self._decide(attributes)[0] is Decision.ALLOW

    def _decide(self, attributes: Attributes) -> DecisionAndReason:
        began = self._monotonic()
        outcome = self._authorization.decide(attributes)
        label = ALLOWED if outcome[0] is Decision.ALLOW else DENIED
        self.checks.append(((self.mode.label, label), self._monotonic() - began))
        return outcome


class _Check:
    """The permissions that one mode needs, in upstream's order."""

    def __init__(self, authorization: _Permissions, mode: _Mode, request: Attributes) -> None:
        self._authorization = authorization
        self._mode = mode
        self._request = request
        user = request.user
        # The permission is for any node, so the authorizer gets only the keys of the extra.
        if mode is _OWN_NODE:
            keys = {"authentication.kubernetes.io/associated-node-keys": sorted(user.extra)}
            user = replace(user, extra=keys)
        self._user = user

    def run(self, impersonation: Impersonation) -> ImpersonatedUser:
        mode = self._mode
        if not mode.is_legacy:
            verb = f"impersonate-on:{mode.name}:{self._request.verb}"
            self._authorization.require(structs.replace(self._request, user=self._user, verb=verb))
        groups = self._name(impersonation)
        if impersonation.uid:
            self._authorization.require(self._attributes("uids", impersonation.uid))
        self._groups(impersonation.groups)
        self._extra(impersonation.extra)
        user = User(
            name=impersonation.user,
            uid=impersonation.uid,
            groups=_complete_groups(impersonation, groups),
            extra=impersonation.extra,
        )
        return ImpersonatedUser(user=user, constraint="" if mode.is_legacy else mode.verb)

    def _name(self, impersonation: Impersonation) -> Sequence[str]:
        """Check the permission for the user name; return the groups, which follow from the name if none are requested."""
        node, account = _node_name(impersonation.user), split_username(impersonation.user)
        if node and not self._mode.is_legacy:
            name = "*" if self._mode is _OWN_NODE else node
            self._authorization.require(self._attributes("nodes", name))
            return (_NODES,)
        if account is None:
            self._authorization.require(self._attributes("users", impersonation.user))
            return impersonation.groups
        namespace, name = account
        attributes = self._attributes("serviceaccounts", name)
        self._authorization.require(structs.replace(attributes, namespace=namespace))
        return impersonation.groups or account_groups(namespace)

    def _groups(self, groups: Sequence[str]) -> None:
        if not self._mode.is_legacy:
            if "" in groups:
                raise forbidden(
                    self._attributes("groups"), "impersonating the empty string group is not allowed"
                )
            if MASTERS in groups:
                reason = f"impersonating the {MASTERS} group is not allowed"
                raise forbidden(self._attributes("groups", MASTERS), reason)
            if len(groups) >= _WILDCARD_CHECK_SIZE and self._authorization.is_allowed(
                self._attributes("groups", "*")
            ):
                return
        for group in groups:
            self._authorization.require(self._attributes("groups", group))

    def _extra(self, extra: Mapping[str, Sequence[str]]) -> None:
        if extra and not self._mode.is_legacy:
            problem = _extra_problem(extra)
            if problem:
                raise forbidden(self._attributes("userextras"), problem)
            is_large = sum(map(len, extra.values())) >= _WILDCARD_CHECK_SIZE
            if is_large and self._authorization.is_allowed(self._attributes("userextras", "*", "*")):
                return
        for key, values in extra.items():
            for value in values:
                self._authorization.require(self._attributes("userextras", value, key))

    def _attributes(self, resource: str, name: str = "", subresource: str = "") -> Attributes:
        is_core = self._mode.is_legacy and resource in _CORE
        return Attributes(
            user=self._user,
            verb=self._mode.verb,
            group="" if is_core else "authentication.k8s.io",
            version="v1",
            resource=resource,
            subresource=subresource,
            name=name,
        )


_CORE: Final = frozenset({"users", "groups", "serviceaccounts"})
"""Resources that the legacy mode checks in the core group."""


def _node_name(username: str) -> str:
    """Return the node name of a node's user name; "" for other users."""
    name = username.removeprefix(_NODE) if username.startswith(_NODE) else ""
    return "" if names.check_dns1123_subdomain(name) else name


def _complete_groups(impersonation: Impersonation, groups: Sequence[str]) -> tuple[str, ...]:
    """Return the groups with system:authenticated or system:unauthenticated."""
    own = tuple(groups)
    if impersonation.user == ANONYMOUS.name:
        return own if _UNAUTHENTICATED in own else (*own, _UNAUTHENTICATED)
    return own if {AUTHENTICATED, _UNAUTHENTICATED} & set(own) else (*own, AUTHENTICATED)


def _extra_problem(extra: Mapping[str, Sequence[str]]) -> str:
    """Return why a constrained mode refuses the extra; "" if it is valid."""
    for key, values in extra.items():
        if not key:
            return "impersonating the empty string key in extra is not allowed"
        problem = _key_problem(key)
        if problem:
            return f"impersonating an invalid key in extra is not allowed: {problem}"
        if key != key.lower():
            return f"impersonating a non-lowercase key in extra is not allowed: {quote(key)}"
        if "" in values:
            return "impersonating the empty string value in extra is not allowed"
    return ""


def _key_problem(key: str) -> str:
    """Return why a key is not a domain-prefixed path such as example.com/scope; "" if it is valid."""
    field_path = Path().child("extra", "key")
    domain, slash, path = key.partition("/")
    if not (slash and domain and path):
        return str(errors.invalid(field_path, key, 'must be a domain-prefixed path (such as "acme.io/foo")'))
    key_errors = [
        errors.invalid(field_path, domain, problem) for problem in names.check_dns1123_subdomain(domain)
    ]
    if not set(path) <= _PATH_CHARACTERS:
        key_errors.append(errors.invalid(field_path, path, _INVALID_PATH))
    texts = list(map(str, key_errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]" if texts else ""


_PATH_CHARACTERS: Final = frozenset(f"{ascii_letters}{digits}/-._~%!$&'()*+,;=:")
_INVALID_PATH: Final = "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"


def _as_go(groups: Sequence[str], uid: str, extra: Mapping[str, Sequence[str]]) -> str:
    """Format the impersonated user as Go's `%#v` does."""
    pairs = ", ".join(f"{quote(key)}:{_strings(values)}" for key, values in sorted(extra.items()))
    mapping = f"map[string][]string{{{pairs}}}" if extra else "map[string][]string(nil)"
    group_list = _strings(groups) if groups else "[]string(nil)"
    return f'&user.DefaultInfo{{Name:"", UID:{quote(uid)}, Groups:{group_list}, Extra:{mapping}}}'


def _strings(texts: Sequence[str]) -> str:
    return f"[]string{{{', '.join(map(quote, texts))}}}"
