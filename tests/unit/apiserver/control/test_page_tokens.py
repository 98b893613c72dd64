"""Who gets a PageToken, without a server."""

import pytest

from mockube.apimachinery.status import Forbidden
from mockube.apiserver.authn.page_sessions import PageSessions
from mockube.apiserver.control.page_tokens import PageTokens
from mockube.apiserver.kinds.built_in_kinds import GROUPS
from mockube.apiserver.registry.request_context import RequestContext
from mockube.apiserver.user import User
from mockube.component_base.clock import SteppedClock


async def test_limited_impersonation_opens_no_page():
    context = RequestContext(
        verb="create",
        resource=GROUPS[0].resources[0],
        user=User(name="bob"),
        authenticated=User(name="alice"),
        constraint="impersonate:user-info",
    )
    with pytest.raises(Forbidden, match="limited"):
        await PageTokens(PageSessions(SteppedClock())).create(None, context)
