"""PageToken: a token with which a browser opens the page of `mockube ui` once, with the rights of the user who created it."""

from datetime import UTC, datetime
from typing import Final

from mockube.apimachinery.status import ApiError, forbidden
from mockube.apimachinery.timestamps import format_time
from mockube.apiserver.authn.page_sessions import PageSessions, is_of_session
from mockube.apiserver.registry.registry import OwnVerbs, Registry
from mockube.apiserver.registry.request_context import ObjectResult, RequestContext, write_options
from mockube.apiserver.request.ui import ROOT

from .kind import ControlKind
from .posted import answer_posted, read_posted
from .schemas import text
from .strategy import ControlStrategy

_NAME: Final = "page"

PAGE_TOKEN: Final = ControlKind(
    name="PageToken",
    plural="pagetokens",
    description="PageToken requests a token with which a browser opens the page of the cluster once, with the rights of the user "
    "who creates it. It is created, as a review is, and not stored.",
    spec={"description": "Nothing."},
    status={
        "description": "The token.",
        "properties": {
            "token": text("The token. It can be used once."),
            "expirationTimestamp": text(
                "The time after which it cannot be used any more.", format="date-time"
            ),
            "path": text("The path of the page, with the token in its fragment."),
        },
    },
    columns=(),
    verbs=("create",),
    unlisted_verbs=(),
)


class PageTokens(ControlStrategy):
    kind = PAGE_TOKEN

    def __init__(self, sessions: PageSessions) -> None:
        self._sessions = sessions

    def verbs(self) -> OwnVerbs:
        return {(PAGE_TOKEN.group_resource, ""): {"create": self.create}}

    async def create(self, registry: Registry, context: RequestContext) -> ObjectResult:
        authenticated = context.authenticated or context.user
        if context.constraint:
            raise _forbidden("an impersonation that is limited to some requests opens no page")
        if is_of_session(authenticated):
            raise _forbidden("a session of the page opens no other one: run `mockube ui`")
        tree = await read_posted(registry, context)
        if write_options(context, "CreateOptions").dry_run:
            return answer_posted(tree, {}, _NAME)
        issued = self._sessions.issue(context.user, authenticated, context.credentials_end)
        expires = datetime.fromtimestamp(issued.expires, UTC)
        status = {"token": issued.token, "expirationTimestamp": format_time(expires)}
        return answer_posted(tree, {**status, "path": f"{ROOT}/#token={issued.token}"}, _NAME)


def _forbidden(problem: str) -> ApiError:
    return forbidden(PAGE_TOKEN.group_resource, "", problem)
