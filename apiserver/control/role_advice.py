"""RoleAdvice: the smallest roles for what a user did, and what its roles allow that it never did. It is posted as reviews are."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct, field

from mockube.apimachinery import status
from mockube.apimachinery.timestamps import format_micro_time
from mockube.apimachinery.tree import Tree
from mockube.apiserver.authn.serviceaccount.claims import groups as account_groups
from mockube.apiserver.authn.serviceaccount.claims import split_username
from mockube.apiserver.authz.rbac.policy import GROUP, RBACPolicy
from mockube.apiserver.authz.rbac.rules import RuleSet
from mockube.apiserver.event_loop import QUICK_SLICE
from mockube.apiserver.registry.moments import Moments
from mockube.apiserver.registry.registry import OwnVerbs, Registry
from mockube.apiserver.registry.request_context import ObjectResult, RequestContext
from mockube.apiserver.user import ANONYMOUS, AUTHENTICATED, User
from mockube.component_base.loop import yield_to_loop

from .access import Right, ScopedRight, UserRights, is_allowed, is_long, request_rights
from .kind import ControlKind
from .posted import answer_posted, read_posted
from .recorder import RecordedRequest, RequestRecorder
from .requests import REQUEST, may_see
from .role_rules import ALL_NAMES, allows, rules_of
from .schemas import integer, object_of, text
from .strategy import ControlStrategy
from .unused_rights import RoleReader, UnusedRights

_NEEDS_REQUESTS: Final = (
    "an advice is made of requests of others: it needs the verb get for requests of the group"
)
_ROLE_API: Final = f"{GROUP}/v1"
_RULES: Final = {
    "type": "array",
    "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}
_MISSING_CHARACTERS: Final = str.maketrans("/%", "--")
"""The name of a role cannot contain the keys."""

ROLE_ADVICE: Final = ControlKind(
    name="RoleAdvice",
    plural="roleadvices",
    description="RoleAdvice returns the smallest roles for what a user did, as objects to apply, and what the roles of the user "
    "allow that it never did. It is created, as a review is, and not stored. It is made of the Requests that the server has.",
    spec=object_of(
        "Whose requests.",
        {
            "user": text("The name of the user.", minLength=1, maxLength=1024),
            "groups": {
                "type": "array",
                "maxItems": 100,
                "items": {"type": "string", "maxLength": 1024},
                "description": "The groups of the user, whose roles it has, too. The default is those of its last request.",
            },
            "since": text(
                "From when on: the name of a Mark, a revision, a time, or a span before now such as -5m. The default is the "
                "first request that the server has.",
                minLength=1,
                maxLength=253,
            ),
            "roleName": text("The name of the roles. The default is that of the user.", maxLength=253),
            "maxNames": integer(
                "A verb on so many objects is allowed on these by name, on more on all objects. The default is 1.",
                minimum=0,
                maximum=1000,
                default=1,
            ),
            "includeRefused": {
                "type": "boolean",
                "description": "Whether the roles allow what was refused to the user for lack of rights.",
            },
        },
        "user",
    ),
    is_spec_required=True,
    status=object_of(
        "What the user needs.",
        {
            "since": text("The time from which on requests were read."),
            "requests": integer("The requests of the user that were read."),
            "isComplete": {
                "type": "boolean",
                "description": "Whether these are all requests since then: the server still has them, --control-requests sets how many, and the "
                "creator may see them.",
            },
            "groups": {
                "type": "array",
                "items": {"type": "string"},
                "description": "The groups of the user.",
            },
            "objects": {
                **_RULES,
                "description": "The roles and the bindings, to apply. What every authenticated user may do is not in them.",
            },
            "refused": {**_RULES, "description": "What was refused to the user for lack of rights."},
            "unused": {
                **_RULES,
                "description": "The rights of roles of the user that no request used, by binding; and the wildcards of roles with "
                "what was used of them.",
            },
            "unusedOmitted": {
                "type": "array",
                "items": {"type": "string"},
                "description": "What is not among the unused rights.",
            },
        },
    ),
    columns=(),
    verbs=("create",),
    unlisted_verbs=(),
)


class _Use(Struct):
    """What a user did."""

    requests: int = 0
    hidden: int = 0
    """The requests that whoever asks may not see."""
    groups: Sequence[str] | None = None
    """Those of its last request; None without one."""
    allowed: set[ScopedRight] = field(default_factory=set)
    refused: set[ScopedRight] = field(default_factory=set)


class RoleAdvices(ControlStrategy):
    kind = ROLE_ADVICE

    def __init__(
        self, cluster: Registry, recorder: RequestRecorder, moments: Moments, policy: RBACPolicy
    ) -> None:
        self._cluster, self._recorder, self._moments, self._policy = cluster, recorder, moments, policy

    def verbs(self) -> OwnVerbs:
        return {(ROLE_ADVICE.group_resource, ""): {"create": self.create}}

    async def create(self, registry: Registry, context: RequestContext) -> ObjectResult:
        tree = await read_posted(registry, context)
        if not await is_allowed(self._cluster, context.user, "get", REQUEST.group_resource):
            raise status.forbidden(ROLE_ADVICE.group_resource, "", _NEEDS_REQUESTS)
        rights = UserRights(self._cluster, self._policy, context)
        advice = await self._advise(tree["spec"], RoleReader(self._cluster, context.user), rights)
        return answer_posted(tree, advice, tree["spec"]["user"])

    async def _advise(self, spec: Tree, reader: RoleReader, rights: UserRights) -> Tree:
        name = spec["user"]
        since = await self._moments.time_since(spec["since"]) if "since" in spec else None
        use = await self._read(name, since, rights)
        groups = spec.get("groups") or use.groups or ()
        user, everyone = _user(name, groups)
        common = self._granted_to(everyone)
        needed = use.allowed | use.refused if spec.get("includeRefused") else use.allowed
        needed = {each for each in needed if not allows(common, each.right)}
        rules = _rules_by_namespace(needed, spec.get("maxNames", 1))
        unused = await UnusedRights(self._policy, reader).find(user, use.allowed)
        advice = {
            "since": "" if since is None else format_micro_time(since),
            "requests": use.requests,
            "isComplete": not use.hidden and self._is_complete(name, since),
            "groups": [*groups],
            "objects": _objects(user, spec.get("roleName") or _role_name(name), rules),
            "refused": [
                {**({"namespace": namespace} if namespace else {}), **rule}
                for namespace, of_namespace in _rules_by_namespace(use.refused, ALL_NAMES).items()
                for rule in of_namespace
            ],
            "unused": unused.rights,
            "unusedOmitted": unused.omitted,
        }
        return {key: value for key, value in advice.items() if value not in ("", [])}

    async def _read(self, user: str, since: datetime | None, rights: UserRights) -> _Use:
        use = _Use()
        for count, recorded in enumerate(self._recorder.published()):
            if count % QUICK_SLICE == QUICK_SLICE - 1:
                await yield_to_loop()
            if (since is not None and recorded.at < since) or not _concerns(recorded, user):
                continue
            if await may_see(rights, recorded):
                _add(use, recorded, user)
            else:
                use.hidden += 1
        return use

    def _is_complete(self, user: str, since: datetime | None) -> bool:
        dropped = self._recorder.dropped_until(user)
        return dropped is None or (since is not None and since > dropped)

    def _granted_to(self, user: User) -> RuleSet:
        granted = self._policy.granted_roles(user, "")
        return RuleSet([tree for role in granted if role.rules is not None for tree in role.rules.trees])


def _concerns(recorded: RecordedRequest, user: str) -> bool:
    """Return whether a request was authorized for a user, or for another one as which the user sent it."""
    access = recorded.outcome.access
    return access.is_allowed is not None and user in (recorded.outcome.user, access.requestor)


def _add(use: _Use, recorded: RecordedRequest, user: str) -> None:
    """Add the rights that a request of a user needed, or a request that the user made as another one."""
    outcome = recorded.outcome
    access = outcome.access
    rights = list[ScopedRight]()
    if outcome.user == user:
        use.groups = access.groups
        rights += request_rights(outcome.info, access, outcome.code)
    if access.requestor == user:
        use.allowed.update(access.impersonation)
    use.requests += 1
    if not is_long(rights):
        (use.allowed if access.is_allowed else use.refused).update(rights)


def _user(name: str, groups: Sequence[str]) -> tuple[User, User]:
    """Return the user with the groups that it alone has, and one with the groups that it has with all others of its kind."""
    account = split_username(name)
    common = {AUTHENTICATED, *ANONYMOUS.groups, *(() if account is None else account_groups(account[0]))}
    own = [group for group in groups if group not in common]
    is_anonymous = name == ANONYMOUS.name
    shared = ANONYMOUS.groups if is_anonymous else sorted(common.difference(ANONYMOUS.groups))
    return User(name=name, groups=own), User(name="", groups=shared)


def _role_name(user: str) -> str:
    account = split_username(user)
    return user.translate(_MISSING_CHARACTERS) if account is None else account[1]


def _rules_by_namespace(rights: Collection[ScopedRight], max_names: int) -> Mapping[str, Sequence[Tree]]:
    """Return the rules for the cluster, by "", and those for namespaces that the rules for the cluster do not allow."""
    by_namespace: dict[str, set[Right]] = defaultdict(set)
    for namespace, right in rights:
        by_namespace[namespace].add(right)
    cluster = rules_of(by_namespace.pop("", ()), max_names)
    rule_set = RuleSet(cluster)
    rules = {"": cluster}
    for namespace, of_namespace in sorted(by_namespace.items()):
        rules[namespace] = rules_of([each for each in of_namespace if not allows(rule_set, each)], max_names)
    return {namespace: of_namespace for namespace, of_namespace in rules.items() if of_namespace}


def _objects(user: User, name: str, rules: Mapping[str, Sequence[Tree]]) -> Sequence[Tree]:
    return [
        each
        for namespace, of_role in rules.items()
        for each in _role_and_binding(user, name, namespace, of_role)
    ]


def _role_and_binding(user: User, name: str, namespace: str, rules: Sequence[Tree]) -> Iterator[Tree]:
    kind = "Role" if namespace else "ClusterRole"
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    yield {"apiVersion": _ROLE_API, "kind": kind, "metadata": metadata, "rules": [*rules]}
    yield {
        "apiVersion": _ROLE_API,
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name},
        "subjects": [_subject(user.name)],
    }


def _subject(user: str) -> Tree:
    account = split_username(user)
    if account is None:
        return {"apiGroup": GROUP, "kind": "User", "name": user}
    namespace, name = account
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
