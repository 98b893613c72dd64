"""Errors of the Python API that users cause. Their messages are complete, so that no frame of mockube is shown with them."""

from typing import Final

from mockube.apimachinery.status import ApiError
from mockube.client.wire import NoResponse
from mockube.failure import Failure

from .caller import frames_of_function


class InvalidType(TypeError):
    """An argument has a type that the method does not take."""


class InvalidValue(ValueError):
    """An argument has a value that the method does not take."""


class NoSuchFile(FileNotFoundError):
    """There is no file or folder of this name."""


class KindNotServed(Exception):
    """The server does not serve this kind."""


class WaitFailed(TimeoutError):
    """The object did not meet the condition in time. The message says what was found instead."""


EXPLAINED: Final = (
    ApiError,
    NoResponse,
    Failure,
    InvalidType,
    InvalidValue,
    NoSuchFile,
    KindNotServed,
    WaitFailed,
)
"""The errors whose message is enough."""


def without_frames(error: BaseException) -> BaseException:
    """Return an error of a method without the frames of mockube, if its message explains it, or if a user's function raised it."""
    frames = frames_of_function(error)
    if isinstance(error, EXPLAINED):
        error.__cause__, error.__suppress_context__ = None, True
    elif frames is None:
        return error
    return error.with_traceback(frames)
