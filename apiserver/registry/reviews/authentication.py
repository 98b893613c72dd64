"""Reviews of authentication.k8s.io: TokenReview of a token, SelfSubjectReview of the requesting user, TokenRequest.

A TokenRequest returns a token of a service account, bound to a pod, a secret or a node on request.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from msgspec import Struct

from mockube.apimachinery import errors, gotext, names, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupKind, GroupResource
from mockube.apimachinery.paths import ROOT, Path
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import Tree
from mockube.apiserver.authn.authenticators import BadToken, BearerTokens
from mockube.apiserver.authn.serviceaccount.claims import Account, Reference
from mockube.apiserver.authn.serviceaccount.tokens import POD_TOKEN_SECONDS, ServiceAccounts
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import ObjectResult, RequestContext
from mockube.apiserver.user import User

from . import review


class TokenReviews:
    def __init__(self, tokens: BearerTokens) -> None:
        self._tokens = tokens

    async def create(self, registry: Registry, context: RequestContext) -> ObjectResult:
        tree = await review.read(registry, context, _check_token)
        spec = tree["spec"]
        try:
            token_review = await self._tokens.review(spec["token"], spec.get("audiences") or ())
        except BadToken as error:
            return review.answer(tree, {"user": {}, "error": str(error)})
        if token_review.notes is not None:
            context.report.annotations.update(token_review.notes.annotations)
            for text in token_review.notes.warnings:
                context.report.warn(text)
        review_status = {
            "authenticated": True,
            "user": user_info(token_review.user),
            "audiences": list(token_review.audiences),
        }
        return review.answer(tree, review.without_empty(review_status))


def _check_token(tree: Tree) -> None:
    if not (tree.get("spec") or {}).get("token"):
        raise status.BadRequest("token is required for TokenReview in authentication")


async def self_subject_review(registry: Registry, context: RequestContext) -> ObjectResult:
    tree = await review.read(registry, context)
    type_meta = {"kind": tree["kind"], "apiVersion": tree["apiVersion"]}
    metadata = {"creationTimestamp": format_time(registry.clock.now())}
    return review.answer({**type_meta, "metadata": metadata}, {"userInfo": user_info(context.user)})


def user_info(user: User) -> Tree:
    extra = {name: list(values) for name, values in user.extra.items()}
    return review.without_empty(
        {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}
    )


TOKEN_REQUEST = GroupKind("authentication.k8s.io", "TokenRequest")
MIN_SECONDS, MAX_SECONDS = 600, 1 << 32
EXTENDED_SECONDS = 365 * 24 * 60 * 60
"""The lifetime of the token that a pod gets by default."""


_ISSUED_ID = "authentication.kubernetes.io/issued-credential-id"
"""The audit annotation with the id of an issued token."""


class TokenRequests:
    def __init__(self, accounts: ServiceAccounts) -> None:
        self._accounts = accounts

    async def create(self, registry: Registry, context: RequestContext) -> ObjectResult:
        attributes = await review.run_mutation(registry, context)
        tree = review.object_of(attributes)
        spec, metadata = tree.get("spec") or {}, tree["metadata"]
        _check_name(metadata.get("name", ""), context.name)
        owner = await self._get("serviceaccounts", context.namespace, context.name)
        uid = owner["metadata"]["uid"]
        _check_uid(metadata.get("uid", ""), uid, context.name)
        now, seconds = registry.clock.now(), spec.get("expirationSeconds", 3600)
        audiences = list(spec.get("audiences") or self._accounts.audiences)
        request = attributes.object = {
            **tree,
            "metadata": _metadata(metadata, context, uid, format_time(now)),
            "spec": {**spec, "audiences": audiences, "expirationSeconds": seconds},
            "status": {"token": "", "expirationTimestamp": None},
        }
        is_older = registry.is_before("1.37")
        if field_errors := _check_spec(request["spec"], is_older=is_older):
            raise status.invalid(TOKEN_REQUEST, "", field_errors)
        await registry.admission.validate(registry, attributes)
        bound = await self._bound_objects(context, spec.get("boundObjectRef"), is_older=is_older)
        account = Account(namespace=context.namespace, account=Reference(context.name, uid), **bound)
        max_seconds = self._accounts.lifetime.max_expiration_seconds
        if 0 < max_seconds < seconds:
            context.report.warn(
                f"requested expiration of {seconds} seconds shortened to {max_seconds} seconds"
            )
            seconds = max_seconds
        is_extended = self._is_extended(account, audiences, seconds)
        token = self._accounts.issue_token(
            account,
            audiences=audiences,
            seconds=EXTENDED_SECONDS if is_extended else seconds,
            warn_after=seconds if is_extended else None,
        )
        context.report.annotations[_ISSUED_ID] = f"JTI={token.id}"
        returned_spec = {
            "audiences": audiences,
            "expirationSeconds": seconds,
            "boundObjectRef": spec.get("boundObjectRef"),
        }
        expires = format_time(now + timedelta(seconds=seconds))
        return review.answer(
            {**request, "spec": returned_spec}, {"token": token.text, "expirationTimestamp": expires}
        )

    def _is_extended(self, account: Account, audiences: Sequence[str], seconds: int) -> bool:
        """Return whether this is the token that a pod gets by default, for the audiences of this server only."""
        is_pods_own = account.pod is not None and seconds == POD_TOKEN_SECONDS
        return (
            self._accounts.lifetime.extends_expiration
            and is_pods_own
            and {*audiences} <= {*self._accounts.audiences}
        )

    async def _get(self, resource: str, namespace: str, name: str) -> Tree:
        tree = await self._accounts.find(resource, namespace, name)
        if tree is None:
            raise status.not_found(GroupResource("", resource), name)
        return tree

    async def _bound_objects(
        self, context: RequestContext, reference: Mapping[str, Any] | None, *, is_older: bool
    ) -> dict[str, Reference | None]:
        """Return the objects that the token is bound to, by claim."""
        if not reference:
            return {}
        api_version, kind, name = (reference.get(field, "") for field in ("apiVersion", "kind", "name"))
        group, _, version = api_version.rpartition("/")
        # As upstream, the version is ignored.
        bindable = _BINDABLE_KINDS.get((group, kind))
        if bindable is None:
            gate = "" if is_older or not _is_webhook(reference) else _NO_WEBHOOKS
            raise status.BadRequest(
                f"cannot bind token to object of type {group}/{version}, Kind={kind}{gate}"
            )
        namespace = context.namespace if bindable.namespaced else ""
        bound_object = await self._get(bindable.resource, namespace, name)
        uid = bound_object["metadata"]["uid"]
        if reference.get("uid", uid) != uid:
            expected_uid = reference["uid"]
            raise status.conflict(
                GroupResource("", kind), name, _ANOTHER.format(expected=expected_uid, uid=uid)
            )
        bound: dict[str, Reference | None] = {bindable.claim: Reference.of(bound_object)}
        if bindable.has_node:
            bound["node"] = await self._node_of(bound_object, context.name)
        return bound

    async def _node_of(self, pod: Tree, account: str) -> Reference | None:
        """Return the node of a pod, which is a claim of its tokens."""
        spec = pod["spec"]
        if spec.get("serviceAccountName", "") != account:
            problem = f"cannot bind token for serviceaccount {gotext.quote(account)}"
            raise status.BadRequest(f"{problem} to pod running with different serviceaccount name.")
        name = spec.get("nodeName", "")
        if not name:
            return None
        node = await self._accounts.find("nodes", "", name)
        return Reference(name, "") if node is None else Reference.of(node)


class _BindableKind(Struct, frozen=True, kw_only=True):
    """A kind of object that a token can be bound to."""

    resource: str
    claim: str
    namespaced: bool = True
    has_node: bool = False
    """Whether its node becomes a claim, too."""


_BINDABLE_KINDS: Final = {
    ("", "Pod"): _BindableKind(resource="pods", claim="pod", has_node=True),
    ("", "Secret"): _BindableKind(resource="secrets", claim="secret"),
    ("", "Node"): _BindableKind(resource="nodes", claim="node", namespaced=False),
}
_WEBHOOKS_VERSION: Final = "admissionregistration.k8s.io/v1"
_WEBHOOKS: Final = ("ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_NO_WEBHOOKS: Final = " (feature gate APIServerWebhookAuthenticationToken is disabled)"
_ONLY_WEBHOOKS: Final = "attestations may only be specified with a webhook bound object reference"
_GROUPS: Final = "admissionReviewAPIGroups"
_SPEC: Final = ROOT.child("spec")
_ANOTHER = (
    "the UID in the bound object reference ({expected}) does not match the UID in record. "
    "The object might have been deleted and then recreated"
)


def _metadata(metadata: Tree, context: RequestContext, uid: str, time: str) -> Tree:
    system_fields = {
        "name": context.name,
        "namespace": context.namespace,
        "uid": uid,
        "creationTimestamp": time,
    }
    return system_fields | {name: value for name, value in metadata.items() if name not in system_fields}


def _check_name(sent_name: str, name: str) -> None:
    if sent_name not in ("", name):
        problem = "must match the service account name if specified"
        raise status.invalid(
            TOKEN_REQUEST, name, [errors.invalid(ROOT.child("metadata", "name"), sent_name, problem)]
        )


def _check_uid(sent_uid: str, uid: str, name: str) -> None:
    if sent_uid and sent_uid != uid:
        problem = (
            f"the UID in the token request ({sent_uid}) does not match the UID of the service account ({uid})"
        )
        raise status.conflict(GroupResource(TOKEN_REQUEST.group, TOKEN_REQUEST.kind), name, problem)


def _check_spec(spec: Tree, *, is_older: bool) -> list[FieldError]:
    seconds_errors = _check_seconds(spec["expirationSeconds"])
    if is_older:
        return seconds_errors
    attestations, path = spec.get("attestations"), _SPEC.child("attestations")
    if not _is_webhook(spec.get("boundObjectRef") or {}):
        return [errors.invalid(path, attestations, _ONLY_WEBHOOKS)] if attestations else seconds_errors
    if len(spec["audiences"]) != 1:
        problem = "must be length 1 when bound to a webhook config"
        seconds_errors.append(errors.invalid(_SPEC.child("audiences"), spec["audiences"], problem))
    return [*seconds_errors, *_check_attestations(attestations, path)]


def _check_attestations(attestations: Tree | None, path: Path) -> Iterator[FieldError]:
    if len(attestations or {}) != 1:
        problem = f"webhook bound requests require exactly one {_GROUPS} attestation"
        yield errors.invalid(path, attestations, problem)
        return
    ((key, values),) = (attestations or {}).items()
    path = path.key(key)
    if key != _GROUPS:
        yield errors.not_supported(path, key, (_GROUPS,))
    elif len(values or ()) != 1:
        yield errors.invalid(path, values, "must specify a single value")
    elif not values[0]:
        yield errors.invalid(path.index(0), "", "may not be an empty string")
    elif values[0] != "*":
        for problem in names.check_dns1123_subdomain(values[0]):
            yield errors.invalid(path.index(0), values[0], f"must specify a valid API Group: {problem}")


def _is_webhook(reference: Mapping[str, Any]) -> bool:
    return reference.get("apiVersion") == _WEBHOOKS_VERSION and reference.get("kind") in _WEBHOOKS


def _check_seconds(seconds: int) -> list[FieldError]:
    path = _SPEC.child("expirationSeconds")
    if seconds < MIN_SECONDS:
        return [errors.invalid(path, seconds, "may not specify a duration less than 10 minutes")]
    if seconds > MAX_SECONDS:
        return [errors.invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")]
    return []
