"""The authorization of kubelet requests: the API server decides whether a user may use nodes/proxy and the like."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

import orjson

from mockube.apimachinery.status import ApiError
from mockube.client.verbs import Client
from mockube.client.wire import NoResponse
from mockube.component_base.clock import Clock
from mockube.kubelet.shared_work import SharedWork

from . import limits
from .authentication import KubeletUser

ALLOWED_SECONDS: Final = 300.0
DENIED_SECONDS: Final = 30.0
"""How long a decision is cached in seconds: as in a kubelet's webhook authorizer."""
_PATH: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_VERBS: Final[Mapping[str, str]] = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}
_SUBRESOURCES: Final[Mapping[str, Sequence[str]]] = {
    "/allocatedPods": ("pods", "proxy"),
    "/pods": ("pods", "proxy"),
    "/runningpods": ("pods", "proxy"),
    "/healthz": ("healthz", "proxy"),
    "/configz": ("configz", "proxy"),
    "/flagz": ("configz",),
    "/statusz": ("statusz",),
    "/checkpoint": ("checkpoint",),
    "/metrics": ("metrics",),
    "/stats": ("stats",),
    "/logs": ("log",),
}
"""The subresources of a node by the beginning of the path; all other paths need nodes/proxy."""


class RequestAttributes(NamedTuple):
    """The attributes of a request: its verb, its node, and the subresources of which the user needs one."""

    verb: str
    subresources: Sequence[str]
    node: str


def request_attributes(method: str, path: str, node: str) -> RequestAttributes:
    first = "/".join(path.split("/", 2)[:2])
    return RequestAttributes(_VERBS.get(method, ""), _SUBRESOURCES.get(first, ("proxy",)), node)


class KubeletAuthorizer:
    def __init__(self, client: Client, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._reviews = SharedWork[bool]()
        self._decisions: OrderedDict[tuple[KubeletUser, str, str, str], tuple[bool, float]] = OrderedDict()

    async def is_allowed(self, user: KubeletUser, attributes: RequestAttributes) -> bool:
        for subresource in attributes.subresources:
            if await self._is_allowed(user, attributes.verb, subresource, attributes.node):
                return True
        return False

    async def _is_allowed(self, user: KubeletUser, verb: str, subresource: str, node: str) -> bool:
        key = (user, verb, subresource, node)
        allowed, until = self._decisions.get(key, (False, 0.0))
        if self._clock.monotonic() < until:
            return allowed
        allowed = await self._reviews.run(key, partial(self._review, user, verb, subresource, node))
        seconds = ALLOWED_SECONDS if allowed else DENIED_SECONDS
        self._decisions[key] = allowed, self._clock.monotonic() + seconds
        if len(self._decisions) > limits.MAX_DECISIONS:
            self._decisions.popitem(last=False)
        return allowed

    async def _review(self, user: KubeletUser, verb: str, subresource: str, node: str) -> bool:
        attributes = {
            "verb": verb,
            "version": "v1",
            "resource": "nodes",
            "subresource": subresource,
            "name": node,
        }
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user.name, "groups": list(user.groups), "resourceAttributes": attributes},
        }
        try:
            response = await self._client.raw("POST", _PATH, body=orjson.dumps(review))
        except (ApiError, NoResponse):
            return False
        return bool((response.get("status") or {}).get("allowed"))
