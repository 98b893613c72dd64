"""Validation of a webhook's client configuration: a URL or a Service."""

import re
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import SplitResult

from mockube.apimachinery import errors, names
from mockube.apimachinery.errors import FieldError
from mockube.apimachinery.paths import Path
from mockube.apimachinery.tree import ReadOnlyTree
from mockube.apimachinery.uri import parse_problem, unescape

from .checks import Check

_SCHEME: Final = re.compile("[A-Za-z][A-Za-z0-9+.-]*+:")
_FORM: Final = "; desired format: https://host[/path]"


def _check_parts(url: SplitResult, path: Path) -> Iterator[FieldError]:
    user, separator, host = url.netloc.rpartition("@")
    if url.scheme != "https":
        yield errors.invalid(path, url.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    if not host:
        yield errors.invalid(path, "", f"host must be specified{_FORM}")
    if separator:
        yield errors.invalid(path, user, "user information is not permitted in the URL")
    if url.fragment:
        yield errors.invalid(path, url.fragment, "fragments are not permitted in the URL")
    if url.query:
        yield errors.invalid(path, url.query, "query parameters are not permitted in the URL")


def _split(text: str) -> SplitResult:
    """Return the parts of a valid URL, as Go does: Python's `urlsplit` refuses some hosts that Go accepts."""
    rest, _, fragment = text.partition("#")
    scheme = _SCHEME.match(rest)
    rest, _, query = (rest[scheme.end() :] if scheme else rest).partition("?")
    authority = rest[2:].partition("/")[0] if rest.startswith("//") else ""
    return SplitResult(
        scheme=scheme[0][:-1].lower() if scheme else "",
        netloc=authority,
        path="",
        query=query,
        fragment=unescape(fragment),
    )


def _check_url(text: str, path: Path) -> Iterable[FieldError]:
    if problem := parse_problem(text):
        return (errors.required(path, f"url must be a valid URL: {problem}{_FORM}"),)
    return _check_parts(_split(text), path)


# --- services


def _check_path(url_path: str, path: Path) -> Iterator[FieldError]:
    if url_path in ("", "/"):
        return
    if url_path == "//":
        yield errors.invalid(path, url_path, "segment[0] may not be empty")
        return
    if not url_path.startswith("/"):
        yield errors.invalid(path, url_path, "must start with a '/'")
    rest = url_path[1:] if url_path[0].isascii() else "\ufffd" + url_path[1:]  # Go omits a byte
    for index, segment in enumerate(rest.removesuffix("/").split("/")):
        if not segment:
            yield errors.invalid(path, url_path, f"segment[{index}] may not be empty")
            continue
        for problem in names.check_dns1123_subdomain(segment):
            yield errors.invalid(path, url_path, f"segment[{index}]: {problem}")


def _check_service(service: ReadOnlyTree, path: Path) -> Iterator[FieldError]:
    """Check the reference to a Service. As upstream, a missing namespace is reported as a missing name, and vice versa."""
    for missing_field, reported_field in (("namespace", "name"), ("name", "namespace")):
        if not service.get(missing_field):
            yield errors.required(path.child(reported_field))
    port = service.get("port", 0)
    problems = names.check_port_number(port)
    if problems:
        yield errors.invalid(path.child("port"), port, f"port is not valid: {', '.join(problems)}")
    if service.get("path") is not None:
        yield from _check_path(service["path"], path.child("path"))


def client(name: str) -> Check:
    """Return the check of a webhook's client configuration, empty or not."""

    def check(tree: ReadOnlyTree, path: Path) -> Iterable[FieldError]:
        config, path = tree.get(name) or {}, path.child(name)
        url, service = config.get("url"), config.get("service")
        if (url is None) == (service is None):
            return (errors.required(path, "exactly one of url or service is required"),)
        if url is not None:
            return _check_url(url, path.child("url"))
        return _check_service(service or {}, path.child("service"))

    return check


# --- versions of reviews

_ACCEPTED: Final = ("v1", "v1beta1")


def check_review_versions(
    versions: list[str], path: Path, *, any_accepted: bool = False
) -> Iterator[FieldError]:
    """Check the versions of reviews; unless `any_accepted`, the server must support one of them."""
    seen = set()
    for index, version in enumerate(versions):
        if version in seen:
            yield errors.invalid(path.index(index), version, "duplicate version")
            continue
        seen.add(version)
        for problem in names.check_dns1035_label(version):
            yield errors.invalid(path.index(index), version, problem)
    if not any_accepted and not accepts(versions):
        yield errors.invalid(path, versions, f"must include at least one of {', '.join(_ACCEPTED)}")


def accepts(versions: Iterable[str]) -> bool:
    return any(version in _ACCEPTED for version in versions)


ONE_OF_REVIEWS: Final = f"must specify one of {', '.join(_ACCEPTED)}"
