"""The page of a controller manager in another process, which has its queues."""

from pathlib import Path
from typing import Final

from aiohttp import ClientError, ClientSession, ClientTimeout

from mockube.apimachinery.status import ServiceUnavailable
from mockube.component_base.component_urls import CONTROLLERS_PAGE, CONTROLLERS_TOKEN, read_component_urls

from . import outgoing_limits

SECONDS: Final = 10.0
_NOT_KNOWN: Final = "the server does not know where the controller manager is: it has no --component-urls"
_NOT_STARTED: Final = "the controller manager has not started yet, or serves no page of its controllers"


class ManagerPage:
    """Reads the page at the address that the manager has written."""

    def __init__(self, urls_file: Path | None) -> None:
        self._urls_file = urls_file

    async def read(self) -> bytes:
        if self._urls_file is None:
            raise ServiceUnavailable(_NOT_KNOWN)
        urls = read_component_urls(self._urls_file)
        url, token = urls.get(CONTROLLERS_PAGE), urls.get(CONTROLLERS_TOKEN, "")
        if url is None:
            raise ServiceUnavailable(_NOT_STARTED)
        try:
            async with (
                ClientSession(timeout=ClientTimeout(total=SECONDS)) as session,
                session.get(
                    url,
                    headers={"Authorization": f"Bearer {token}"},
                    ssl=False,
                    allow_redirects=False,
                ) as response,
            ):
                body = await outgoing_limits.read_whole(response, outgoing_limits.MAX_DOCUMENT)
        except (ClientError, TimeoutError, ValueError) as error:
            raise ServiceUnavailable(f"the controller manager does not respond: {error}") from error
        if response.status != 200:
            raise ServiceUnavailable(f"the controller manager responded with {response.status}")
        return body
