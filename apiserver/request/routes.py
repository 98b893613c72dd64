"""What upstream's router refuses before a handler is called: methods, media types that were sent, and those wanted."""

from collections.abc import Collection
from typing import Final

from mockube.apimachinery.status import Details, MethodNotSupported, NotAcceptable, UnsupportedMediaType
from mockube.apiserver.request.health import Page
from mockube.apiserver.request.request import ACCEPT, CONTENT_TYPE, Request
from mockube.apiserver.request.response import Response
from mockube.apiserver.wire.negotiation import FORMATS, Format, matches_route

NOT_ALLOWED: Final = "the server does not allow this method on the requested resource"
NOT_ACCEPTABLE: Final = f"only the following media types are accepted: {', '.join(FORMATS)}"
"""Of a handler that was called."""
STREAMED: Final = (f"{Format.JSON};stream=watch", f"{Format.PROTOBUF};stream=watch")
NOT_STREAMED: Final = f"only the following media types are accepted: {', '.join(STREAMED)}"


def check_accept(request: Request, produced: tuple[str, ...]) -> None:
    """Raise, unless the client takes one of the media types that a route produces."""
    if not matches_route(request.header(ACCEPT), produced):
        available = ", ".join(produced)
        raise NotAcceptable(f"406: Not Acceptable\n\nAvailable representations: {available}", Details())


def routed(page: Page, produced: tuple[str, ...] = FORMATS, consumed: Collection[str] = ()) -> Page:
    """The page for GET, as upstream's router finds it; pages without this take any method."""

    async def served(request: Request) -> Response:
        if request.method != "GET":
            raise MethodNotSupported(NOT_ALLOWED, Details())
        content_type = request.header(CONTENT_TYPE)
        if content_type and consumed:
            names = (part.partition(";")[0].strip(" ") for part in content_type.split(","))
            if not any(name in consumed for name in names):
                raise UnsupportedMediaType("415: Unsupported Media Type", Details())
        check_accept(request, produced)
        return await page(request)

    return served
