"""Authentication reviews: TokenReview of a token, SelfSubjectReview of the requesting user."""

from mockube.apimachinery import status
from mockube.apimachinery.timestamps import format_time
from mockube.apimachinery.tree import Tree
from mockube.apiserver.authn.credentials import BadToken, BearerTokens
from mockube.apiserver.registry.backend import Backend
from mockube.apiserver.registry.call import Call, ObjectAnswer
from mockube.apiserver.registry.reviews import question
from mockube.apiserver.user import User


class TokenReviews:
    def __init__(self, tokens: BearerTokens) -> None:
        self._tokens = tokens

    async def create(self, backend: Backend, call: Call) -> ObjectAnswer:
        tree = await question.read(backend, call, _check_token)
        spec = tree["spec"]
        try:
            review = await self._tokens.review(spec["token"], spec.get("audiences") or ())
        except BadToken as error:
            return question.answer(tree, {"user": {}, "error": str(error)})
        if review.notes is not None:
            call.annotations.update(review.notes.annotations)
            for text in review.notes.warnings:
                call.warn(text)
        review_status = {
            "authenticated": True,
            "user": user_info(review.user),
            "audiences": list(review.audiences),
        }
        return question.answer(tree, question.without_empty(review_status))


def _check_token(tree: Tree) -> None:
    if not (tree.get("spec") or {}).get("token"):
        raise status.BadRequest("token is required for TokenReview in authentication")


async def self_subject_review(backend: Backend, call: Call) -> ObjectAnswer:
    tree = await question.read(backend, call)
    type_meta = {"kind": tree["kind"], "apiVersion": tree["apiVersion"]}
    metadata = {"creationTimestamp": format_time(backend.clock.now())}
    return question.answer({**type_meta, "metadata": metadata}, {"userInfo": user_info(call.user)})


def user_info(user: User) -> Tree:
    extra = {name: list(values) for name, values in user.extra.items()}
    return question.without_empty(
        {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}
    )
