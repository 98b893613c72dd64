"""Authorization reviews: the SubjectAccessReviews, and the rules of the requesting user."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from mockube.apimachinery import errors, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import Tree
from mockube.apiserver.authz.chain import Attributes, Authorization, AuthorizerFailed, Decision
from mockube.apiserver.kinds.common.declared import distinct
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import ObjectResult, RequestContext
from mockube.apiserver.user import User

from . import review, selectors

_NO_KIND = GroupKind("authorization.k8s.io", "")
"""Upstream's errors name only the group here."""
_ONE_OF_BOTH = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_SPEC, _METADATA = ROOT.child("spec"), ROOT.child("metadata")


class AccessReviews:
    def __init__(self, authorization: Authorization) -> None:
        self._authorization = authorization

    async def of_subject(self, registry: Registry, context: RequestContext) -> ObjectResult:
        tree = await review.read(registry, context, partial(_check_of_subject, registry))
        return await self._answer(tree, _subject(tree["spec"]))

    async def of_local_subject(self, registry: Registry, context: RequestContext) -> ObjectResult:
        tree = await review.read(registry, context, partial(_check_of_local_subject, registry))
        return await self._answer(tree, _subject(tree["spec"]))

    async def of_self(self, registry: Registry, context: RequestContext) -> ObjectResult:
        tree = await review.read(registry, context, partial(_check_of_self, registry))
        return await self._answer(tree, context.user)

    async def rules(self, registry: Registry, context: RequestContext) -> ObjectResult:
        tree = await review.read(registry, context, _check_namespace)
        rules = self._authorization.rules(context.user, tree["spec"]["namespace"])
        review_status = {
            "resourceRules": list(rules.resources),
            "nonResourceRules": list(rules.paths),
            "incomplete": rules.is_incomplete,
            **review.without_empty({"evaluationError": rules.error}),
        }
        return review.answer({**tree, "metadata": {}, "spec": {}}, review_status)

    async def _answer(self, tree: Tree, user: User) -> ObjectResult:
        problem = ""
        try:
            decision, reason = await self._authorization.authorize(_attributes(user, tree["spec"]))
        except AuthorizerFailed as error:
            decision, reason, problem = error.decision, error.reason, str(error)
        review_status: Tree = {"allowed": decision is Decision.ALLOW}
        if decision is Decision.DENY:
            review_status["denied"] = True
        ignored = selectors.ignored_selectors(tree["spec"].get("resourceAttributes") or {})
        return review.answer(
            tree,
            review_status | review.without_empty({"reason": reason, "evaluationError": problem or ignored}),
        )


def _check_of_subject(registry: Registry, tree: Tree) -> None:
    spec = tree.get("spec") or {}
    _refuse(
        registry,
        [*_check_attributes(spec), *_check_subject(spec), *_check_selectors(spec), *_check_metadata(tree)],
    )


def _check_of_local_subject(registry: Registry, tree: Tree) -> None:
    spec = tree.get("spec") or {}
    _refuse(
        registry,
        [
            *_check_attributes(spec),
            *_check_subject(spec),
            *_check_selectors(spec),
            *_check_metadata(tree, allowed="namespace"),
            *_check_local(tree, spec),
        ],
    )


def _check_of_self(registry: Registry, tree: Tree) -> None:
    spec = tree.get("spec") or {}
    _refuse(registry, [*_check_attributes(spec), *_check_selectors(spec), *_check_metadata(tree)])


def _check_namespace(tree: Tree) -> None:
    if not (tree.get("spec") or {}).get("namespace"):
        raise status.BadRequest("no namespace on request")


def _subject(spec: Mapping[str, Any]) -> User:
    return User(
        name=spec.get("user", ""),
        uid=spec.get("uid", ""),
        groups=tuple(spec.get("groups") or ()),
        extra=spec.get("extra") or {},
    )


def _attributes(user: User, spec: Mapping[str, Any]) -> Attributes:
    attributes = spec.get("nonResourceAttributes")
    if attributes is not None:
        return Attributes(user=user, verb=attributes.get("verb", ""), path=attributes.get("path", ""))
    attributes = spec["resourceAttributes"]
    return Attributes(
        user=user,
        verb=attributes.get("verb", ""),
        group=attributes.get("group", ""),
        version=attributes.get("version") or "*",
        resource=attributes.get("resource", ""),
        subresource=attributes.get("subresource", ""),
        namespace=attributes.get("namespace", ""),
        name=attributes.get("name", ""),
        field_selector=selectors.field_selector(attributes),
        label_selector=selectors.label_selector(attributes),
    )


# --- checks


def _refuse(registry: Registry, field_errors: list[FieldError]) -> None:
    if field_errors:
        worded = map(_in_older_words, field_errors) if registry.is_before("1.37") else distinct(field_errors)
        raise status.invalid(_NO_KIND, "", [*worded])


def _in_older_words(error: FieldError) -> FieldError:
    """Return the error of missing or too many attributes with the field that minors before 1.37 name."""
    if error.detail != _ONE_OF_BOTH:
        return error
    if error.value is None:
        return replace(error, field=str(_SPEC.child("resourceAttributes")))
    problem = "cannot be specified in combination with resourceAttributes"
    return replace(error, field=str(_SPEC.child("nonResourceAttributes")), detail=problem)


def _check_attributes(spec: Mapping[str, Any]) -> Iterable[FieldError]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) == (path is None):
        yield errors.invalid(_SPEC, None if path is None else _go(path), _ONE_OF_BOTH)


def _check_subject(spec: Mapping[str, Any]) -> Iterable[FieldError]:
    if not spec.get("user") and not spec.get("groups"):
        yield errors.invalid(
            _SPEC.child("user"), spec.get("user", ""), "at least one of user or group must be specified"
        )


def _check_selectors(spec: Mapping[str, Any]) -> Iterable[FieldError]:
    return selectors.check(spec.get("resourceAttributes") or {})


def _check_metadata(tree: Tree, *, allowed: str = "") -> Iterable[FieldError]:
    if tree["metadata"].keys() - {"managedFields", allowed}:
        problem = f"must be empty except for {allowed}" if allowed else "must be empty"
        yield errors.invalid(_METADATA, tree["metadata"], problem)


def _check_local(tree: Tree, spec: Mapping[str, Any]) -> Iterable[FieldError]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and resource.get("namespace", "") != tree["metadata"].get("namespace", ""):
        field = _SPEC.child("resourceAttributes", "namespace")
        yield errors.invalid(field, resource.get("namespace", ""), "must match metadata.namespace")
    if path is not None:
        yield errors.invalid(
            _SPEC.child("nonResourceAttributes"), _go(path), "disallowed on this kind of request"
        )


def _go(path: Mapping[str, Any]) -> Mapping[str, str]:
    """Return NonResourceAttributes with the Go names of their fields, as in upstream's errors."""
    return {"Path": path.get("path", ""), "Verb": path.get("verb", "")}
