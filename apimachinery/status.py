"""The errors of the API, one class for each reason, and their `Status` objects.

The server raises these errors anywhere, and one file converts them to HTTP responses; a client converts a response back
with `from_tree`. Callers distinguish errors by class. The functions below the classes have exactly upstream's messages.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

import msgspec
from msgspec import Struct

from . import errors, gotext
from .errors import FieldError
from .groups import NO_RESOURCE, GroupKind, GroupResource

MAX_MESSAGE: Final = 2 * errors.MAX_TEXT
"""The maximum number of characters of an error's message."""

_MAX_NAME: Final = 1024
"""The maximum number of characters of a name in a message. No valid name is longer."""


class Cause(Struct, frozen=True, kw_only=True, omit_defaults=True):
    reason: str = ""
    message: str = ""
    field: str = ""


class Details(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """The details of a status. `kind` is a kind or a resource, as in upstream's constructor of the error."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[Cause, ...] = ()
    retry_after_seconds: int = 0

    def tree(self) -> dict[str, Any]:
        tree: dict[str, Any] = msgspec.to_builtins(self)
        if self.causes:
            tree["causes"] = list(tree["causes"])
        return tree


class ApiError(Exception):
    """The base class of the errors that the API returns."""

    reason: ClassVar[str] = ""
    default_code: ClassVar[int] = 500

    def __init__(self, message: str, details: Details | None = None, *, code: int = 0) -> None:
        message = errors.shorten(message, MAX_MESSAGE)
        super().__init__(message)
        self.message = message
        self.details = details
        self.code = code or self.default_code

    def status(self) -> dict[str, Any]:
        """Return the `Status` object of the error."""
        return _tree("Failure", self.message, self.reason, self.details, self.code)


class BadRequest(ApiError):
    reason, default_code = "BadRequest", 400


class Unauthorized(ApiError):
    reason, default_code = "Unauthorized", 401


class Forbidden(ApiError):
    reason, default_code = "Forbidden", 403


class NotFound(ApiError):
    reason, default_code = "NotFound", 404


class MethodNotSupported(ApiError):
    reason, default_code = "MethodNotAllowed", 405


class NotAcceptable(ApiError):
    reason, default_code = "NotAcceptable", 406


class AlreadyExists(ApiError):
    reason, default_code = "AlreadyExists", 409


class Conflict(ApiError):
    reason, default_code = "Conflict", 409


class Expired(ApiError):
    """The requested revision is no longer available: list again."""

    reason, default_code = "Expired", 410


class Gone(ApiError):
    reason, default_code = "Gone", 410


class RequestEntityTooLarge(ApiError):
    reason, default_code = "RequestEntityTooLarge", 413


class UnsupportedMediaType(ApiError):
    reason, default_code = "UnsupportedMediaType", 415


class Invalid(ApiError):
    reason, default_code = "Invalid", 422


class TooManyRequests(ApiError):
    reason, default_code = "TooManyRequests", 429


class InternalError(ApiError):
    reason, default_code = "InternalError", 500


class ServerTimeout(ApiError):
    """The server could not process the request now; nothing was changed."""

    reason, default_code = "ServerTimeout", 500


class ServiceUnavailable(ApiError):
    reason, default_code = "ServiceUnavailable", 503


class Timeout(ApiError):
    """The request timed out; it may have been processed nevertheless."""

    reason, default_code = "Timeout", 504


class Unknown(ApiError):
    """An error without a reason, such as one with an unexpected status code."""


# If two classes have the same code, the later one counts: it makes the weaker promise.
_BY_REASON: Final[Mapping[str, type[ApiError]]] = {
    cls.reason: cls for cls in ApiError.__subclasses__() if cls.reason
}
_BY_CODE: Final[Mapping[int, type[ApiError]]] = {cls.default_code: cls for cls in ApiError.__subclasses__()}


def from_tree(tree: Mapping[str, Any], code: int) -> ApiError:
    """Return the error of a `Status` object. The reason selects the class, or the code if the reason is unknown."""
    cls = _BY_REASON.get(tree.get("reason", "")) or _BY_CODE.get(code, Unknown)
    details = msgspec.convert(tree["details"], Details) if tree.get("details") is not None else None
    return cls(tree.get("message", ""), details, code=code)


def success(details: Details | None = None, *, code: int = 0) -> dict[str, Any]:
    """Return the `Status` object of a success without an object to return, such as a deletion."""
    return _tree("Success", "", "", details, code)


def _tree(outcome: str, message: str, reason: str, details: Details | None, code: int) -> dict[str, Any]:
    """Return a `Status` object with its fields in Kubernetes' order and without empty ones."""
    fields = {
        "message": message,
        "reason": reason,
        "details": None if details is None else details.tree(),
        "code": code,
    }
    present = {name: value for name, value in fields.items() if value not in ("", None, 0)}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": outcome} | present


def _details(subject: GroupResource | GroupKind, name: str, causes: Sequence[Cause] = ()) -> Details:
    return Details(
        name=errors.shorten(name, _MAX_NAME), group=subject[0], kind=subject[1], causes=tuple(causes)
    )


def _quote_name(subject: GroupResource | GroupKind, name: str) -> str:
    return f"{subject} {gotext.quote(errors.shorten(name, _MAX_NAME))}"


def not_found(resource: GroupResource, name: str) -> NotFound:
    return NotFound(f"{_quote_name(resource, name)} not found", _details(resource, name))


def already_exists(resource: GroupResource, name: str) -> AlreadyExists:
    return AlreadyExists(f"{_quote_name(resource, name)} already exists", _details(resource, name))


def generate_name_conflict(resource: GroupResource, name: str, retry_after: int) -> AlreadyExists:
    problem = "already exists, the server was not able to generate a unique name for the object"
    details = msgspec.structs.replace(_details(resource, name), retry_after_seconds=retry_after)
    return AlreadyExists(f"{_quote_name(resource, name)} {problem}", details)


def conflict(resource: GroupResource, name: str, problem: str) -> Conflict:
    message = f"Operation cannot be fulfilled on {_quote_name(resource, name)}: {problem}"
    return Conflict(message, _details(resource, name))


def forbidden(resource: GroupResource, name: str, problem: str, causes: Sequence[Cause] = ()) -> Forbidden:
    if not any(resource):
        subject = ""
    elif not name:
        subject = f"{resource} is "
    else:
        subject = f"{_quote_name(resource, name)} is "
    return Forbidden(f"{subject}forbidden: {problem}", _details(resource, name, causes))


def invalid(kind: GroupKind, name: str, field_errors: Sequence[FieldError]) -> Invalid:
    """Return the error of an invalid object. Each field error is a cause; the message contains each text once."""
    texts, omitted_count = errors.format_within_limit(field_errors, str)
    causes = [
        Cause(reason=error.type.reason, message=text.removeprefix(f"{error.field}: "), field=error.field)
        for error, text in zip(field_errors, texts, strict=False)
    ]
    if omitted_count:
        causes.append(Cause(message=errors.omitted_errors_text(omitted_count)))
    message = f"{_quote_name(kind, name)} is invalid"
    if field_errors:
        message += f": {errors.join_messages(texts, omitted_count)}"
    return Invalid(message, _details(kind, name, causes))


def unsupported_media_type(accepted: Sequence[str]) -> UnsupportedMediaType:
    return UnsupportedMediaType(
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    )


def request_entity_too_large(problem: str) -> RequestEntityTooLarge:
    return RequestEntityTooLarge(f"Request entity too large: {problem}")


def too_many_requests(message: str, retry_after: int, causes: Sequence[Cause] = ()) -> TooManyRequests:
    return TooManyRequests(message, Details(causes=tuple(causes), retry_after_seconds=retry_after))


def internal_error(problem: str) -> InternalError:
    return InternalError(f"Internal error occurred: {problem}", Details(causes=(Cause(message=problem),)))


def timeout(problem: str, retry_after: int, causes: Sequence[Cause] = ()) -> Timeout:
    return Timeout(f"Timeout: {problem}", Details(causes=tuple(causes), retry_after_seconds=retry_after))


NO_RESOURCE_MESSAGE: Final = "the server could not find the requested resource"
"""What a client says if the server has no such path."""
_GENERIC: Final[Mapping[int, tuple[type[ApiError], str]]] = {
    400: (BadRequest, "the server rejected our request for an unknown reason"),
    401: (Unauthorized, "the server has asked for the client to provide credentials"),
    403: (Forbidden, "{server_message}"),
    404: (NotFound, NO_RESOURCE_MESSAGE),
    405: (MethodNotSupported, "the server does not allow this method on the requested resource"),
    406: (NotAcceptable, "the server was unable to respond with a content type that the client supports"),
    409: (Conflict, "the server reported a conflict"),
    415: (UnsupportedMediaType, "{server_message}"),
    422: (Invalid, "the server rejected our request due to an error in our request"),
    429: (TooManyRequests, "the server has received too many requests and has asked us to try again later"),
    503: (ServiceUnavailable, "the server is currently unable to handle the request"),
    504: (
        Timeout,
        "the server was unable to return a response in the time allotted, but may still be processing the request",
    ),
}


def generic(
    code: int,
    *,
    verb: str = "",
    resource: GroupResource = NO_RESOURCE,
    name: str = "",
    server_message: str = "",
) -> ApiError:
    """Return the error of a response without a `Status` object (NewGenericServerResponse)."""
    cls, message = _GENERIC.get(code) or _unexpected_status(code)
    if (code, verb) == (409, "POST"):
        cls = AlreadyExists
    if code == 406 and server_message not in ("", "unknown"):
        message = "{server_message}"
    message = message.format(server_message=server_message, quoted=gotext.quote(server_message), code=code)
    if any(resource):
        message += f" ({' '.join(filter(None, (verb.lower(), str(resource), name)))})"
    return cls(message, _details(resource, name), code=code)


def _unexpected_status(code: int) -> tuple[type[ApiError], str]:
    if code >= 500:
        return InternalError, "an error on the server ({quoted}) has prevented the request from succeeding"
    return Unknown, "the server responded with the status code {code} but did not return more information"
