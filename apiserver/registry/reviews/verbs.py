"""The create verbs of reviews, which replace the generic one."""

from mockube.apimachinery.groups import GroupResource
from mockube.apiserver.authn.authenticators import BearerTokens
from mockube.apiserver.authn.serviceaccount.tokens import ServiceAccounts
from mockube.apiserver.authz.chain import Authorization
from mockube.apiserver.registry.registry import OwnVerbs, Verb

from .authentication import TokenRequests, TokenReviews, self_subject_review
from .authorization import AccessReviews


def review_verbs(tokens: BearerTokens, authorization: Authorization, accounts: ServiceAccounts) -> OwnVerbs:
    authentication, authorization_ = "authentication.k8s.io", "authorization.k8s.io"
    access = AccessReviews(authorization)
    creations: dict[tuple[GroupResource, str], Verb] = {
        (GroupResource(authentication, "tokenreviews"), ""): TokenReviews(tokens).create,
        (GroupResource(authentication, "selfsubjectreviews"), ""): self_subject_review,
        (GroupResource(authorization_, "subjectaccessreviews"), ""): access.of_subject,
        (GroupResource(authorization_, "localsubjectaccessreviews"), ""): access.of_local_subject,
        (GroupResource(authorization_, "selfsubjectaccessreviews"), ""): access.of_self,
        (GroupResource(authorization_, "selfsubjectrulesreviews"), ""): access.rules,
        (GroupResource("", "serviceaccounts"), "token"): TokenRequests(accounts).create,
    }
    return {endpoint: {"create": create} for endpoint, create in creations.items()}
