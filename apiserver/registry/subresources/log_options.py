"""The options of `pods/log`, read and checked, and as a kubelet is sent them."""

from mockube.apimachinery import errors, status, timestamps
from mockube.apimachinery.groups import GroupKind
from mockube.apimachinery.paths import ROOT
from mockube.apimachinery.status import BadRequest
from mockube.apiserver.registry.call import Call

_KIND = GroupKind("", "PodLogOptions")
_NUMBERS = ("sinceSeconds", "tailLines", "limitBytes")


def log_query(call: Call) -> list[tuple[str, str]]:
    """Return the query of a kubelet's log endpoint, in upstream's order."""
    numbers = {name: call.number(name) for name in _NUMBERS}
    since = _since_time(call)
    _check(call, numbers, since)
    chosen = {name: "true" for name in ("follow", "previous", "timestamps") if call.flag(name)}
    chosen |= {name: str(value) for name, value in numbers.items() if value is not None}
    if since is not None:
        chosen["sinceTime"] = since
    return sorted(chosen.items())


def _since_time(call: Call) -> str | None:
    text = call.parameter("sinceTime")
    if text in ("", "null"):
        return None
    try:
        time = timestamps.parse_time(text)
    except ValueError as error:
        raise BadRequest(str(error)) from error
    return timestamps.format_time(time)


def _check(call: Call, numbers: dict[str, int | None], since: str | None) -> None:
    field_errors = []
    for name, least in (("tailLines", 0), ("limitBytes", 1)):
        value = numbers[name]
        if value is not None and value < least:
            problem = "must be greater than 0" if least else "must be greater than or equal to 0"
            field_errors.append(errors.invalid(ROOT.child(name), value, problem))
    seconds = numbers["sinceSeconds"]
    if seconds is not None and since is not None:
        problem = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        field_errors.append(errors.forbidden(ROOT.child("[]"), problem))
    elif seconds is not None and seconds < 1:
        field_errors.append(errors.invalid(ROOT.child("sinceSeconds"), seconds, "must be greater than 0"))
    if call.parameter("stream"):
        field_errors.append(errors.forbidden(ROOT.child("stream"), "may not be specified"))
    if field_errors:
        raise status.invalid(_KIND, call.name, field_errors)
