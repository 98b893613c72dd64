"""Objects that are posted as reviews are: they are validated, carried out and returned with a status, and not stored."""

from collections.abc import Callable, Iterable

from mockube.apimachinery import errors, status
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.tree import Tree
from mockube.apiserver.registry.registry import Registry
from mockube.apiserver.registry.request_context import ObjectResult, RequestContext
from mockube.apiserver.registry.reviews import review

_NAME = "posted"
"""The name by which an object without one is validated: it needs none."""


async def read_posted(
    registry: Registry,
    context: RequestContext,
    check_spec: Callable[[Tree], Iterable[FieldError]] = lambda _: (),
) -> Tree:
    """Return the object of a request; raise an ApiError with its causes if it is invalid.

    `check_spec` returns the errors of a spec that its schema accepts.
    """

    def check(tree: Tree) -> None:
        named = {**tree, "metadata": {"name": _NAME, **tree["metadata"]}}
        field_errors = registry.scheme.rules.check_create(context.resource, named)
        if field_errors := field_errors or [*check_spec(tree.get("spec") or {})]:
            raise status.invalid(context.resource.group_kind, "", field_errors)

    return await review.read(registry, context, check)


def answer_posted(tree: Tree, of_answer: Tree, name: str) -> ObjectResult:
    """Return the object with its status. One that was posted without a name gets one, which kubectl prints."""
    return review.answer({**tree, "metadata": {"name": name, **tree["metadata"]}}, of_answer)


def exclude_both(spec: Tree, field: str, other: str) -> Iterable[FieldError]:
    """Return the error of a spec that has two fields of which it may have one."""
    if field in spec and other in spec:
        yield errors.forbidden(ROOT.child("spec").child(other), f"must not be set together with {field}")


def require_one(spec: Tree, field: str, other: str) -> Iterable[FieldError]:
    """Return the error of a spec that does not have exactly one of two fields."""
    if field not in spec and other not in spec:
        yield errors.required(ROOT.child("spec").child(field), f"{field} or {other} must be set")
    yield from exclude_both(spec, field, other)
