"""The meaning of a read's resourceVersion, and the errors for those that cannot be served."""

from mockube.apimachinery import errors, gotext, status
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.status import ApiError, Cause
from mockube.apiserver.registry.backend import Backend

WAIT_SECONDS = 3.0
"""How long a read waits for a version that is not there yet."""
TOO_OLD_TO_LIST = "The resourceVersion for the provided list is too old."


def version(text: str) -> int:
    """A resourceVersion as a number; "" and "0" are 0. ValueError for what is none, with upstream's words."""
    if not text:
        return 0
    try:
        return gotext.parse_uint(text)
    except gotext.NumberError as error:
        raise ValueError(errors.invalid(ROOT.child("resourceVersion"), text, str(error))) from error


def list_version(text: str) -> int:
    try:
        return version(text)
    except ValueError as error:
        raise status.BadRequest(f"invalid resource version: {error}") from error


def get_version(text: str) -> int:
    try:
        return version(text)
    except ValueError as error:
        raise ApiError(str(error)) from error


async def wait_for(backend: Backend, revision: int) -> None:
    """Wait until the watch cache has a revision, or raise an error that it is too large."""
    if backend.watch_cache.revision < revision and not await backend.watch_cache.wait_reached(
        revision, within=WAIT_SECONDS
    ):
        cause = Cause(reason="ResourceVersionTooLarge", message="Too large resource version")
        problem = f"Too large resource version: {revision}, current: {backend.watch_cache.revision}"
        raise status.timeout(problem, 1, [cause])
