"""The links in HTML pages that pass a proxy: those to the backend's own paths get the path of the proxy in front."""

import posixpath
import re
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from html.entities import html5
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit

from msgspec import Struct

from mockube.component_base.http1.heads import ResponseHead

_LINKS: Final = {
    name.encode(): frozenset(attributes.encode().split())
    for name, attributes in {
        "a": "href",
        "applet": "codebase",
        "area": "href",
        "audio": "src",
        "base": "href",
        "blockquote": "cite",
        "body": "background",
        "button": "formaction",
        "command": "icon",
        "del": "cite",
        "embed": "src",
        "form": "action",
        "frame": "longdesc src",
        "head": "profile",
        "html": "manifest",
        "iframe": "longdesc src",
        "img": "longdesc src usemap",
        "input": "src usemap formaction",
        "ins": "cite",
        "link": "href",
        "object": "classid codebase data usemap",
        "q": "cite",
        "script": "src",
        "source": "src",
        "video": "poster src",
    }.items()
}
"""The attributes with URLs, by the names of elements."""
_RAW_ELEMENTS: Final = frozenset(
    (b"iframe", b"noembed", b"noframes", b"plaintext", b"script", b"style", b"textarea", b"title", b"xmp")
)
"""Elements whose content has no tags, but for their own end."""
_MAX_TAG: Final = 1 << 20
"""The size of a tag beyond which the rest of a page is not read."""
_START: Final = re.compile(rb"<[a-zA-Z!?/]")
_RAW_END: Final = re.compile(rb"</([a-zA-Z]+)[ \t\n\f\r/>]")
_COMMENT_END: Final = re.compile(rb"--!?>")
_SPACE: Final = re.compile(rb"[ \t\n\f\r/]*")
_NAME: Final = re.compile(rb"[^ \t\n\f\r/>]*")
_KEY: Final = re.compile(rb"=?[^ \t\n\f\r/>=]*")
_EQUALS: Final = re.compile(rb"[ \t\n\f\r]*(?:=[ \t\n\f\r]*)?")
_BARE: Final = re.compile(rb"[^ \t\n\f\r>]*")
_ENTITY: Final = re.compile(r"&(?:#([0-9]+);?|#[xX]([0-9a-fA-F]+);?|([a-zA-Z0-9]+;?)(?!=))")
_INVALID: Final = re.compile(r"[\x00-\x1f\x7f]|^[^?#]*%(?![0-9a-fA-F]{2})")
"""What no URL has: control characters, and an escape in the path that is none."""
_VALID_PATH: Final = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:@\[\]%/]*")
_UNQUOTED: Final = "/$&+,:;=@"
_ERRORS: Final = "surrogateescape"
_WINDOW_BITS: Final = {"gzip": zlib.MAX_WBITS | 16, "deflate": -zlib.MAX_WBITS}

Rewrite = Callable[[str], str]


def has_links(head: ResponseHead) -> bool:
    """Return whether the links of a response are rewritten: that of a page, in an encoding that is known, and of no redirect."""
    is_page = head.header("content-type").partition(";")[0].strip() == "text/html"
    return is_page and not head.header("location") and head.header("content-encoding") in {"", *_WINDOW_BITS}


def rewrite_url(url: str, prefix: str, source_host: str, request_host: str) -> str:
    """Return a URL at the backend as one below the prefix, and any other one as it is.

    `source_host` is the backend's, `request_host` the one that the client has named.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return url
    if (
        _INVALID.search(url)
        or parts.netloc not in ("", source_host, request_host)
        or not parts.path.startswith("/")
    ):
        return url
    if parts.netloc != request_host:
        parts = parts._replace(scheme="", netloc="")
    path = unquote(parts.path, errors=_ERRORS)
    if not path.startswith(prefix):
        ending = "/" if path.endswith("/") else ""
        path = posixpath.normpath(f"{prefix}/{path}") + ending
    elif _VALID_PATH.fullmatch(parts.path):
        return parts.geturl()
    return parts._replace(path=quote(path, safe=_UNQUOTED, errors=_ERRORS)).geturl()


async def rewrite_links(body: AsyncIterator[bytes], encoding: str, rewrite: Rewrite) -> AsyncIterator[bytes]:
    """Yield a page as it is received, with other links; in its own encoding."""
    links = LinkRewriter(rewrite)
    if not encoding:
        async for data in body:
            yield links.feed(data)
        yield links.finish()
        return
    reader, writer = (
        zlib.decompressobj(_WINDOW_BITS[encoding]),
        zlib.compressobj(wbits=_WINDOW_BITS[encoding]),
    )
    try:
        async for data in body:
            yield writer.compress(links.feed(reader.decompress(data)))
    except zlib.error as error:
        raise ConnectionError(f"the body is not {encoding}") from error
    yield writer.compress(links.finish()) + writer.flush()


class LinkRewriter:
    """Writes start tags as upstream does, in lower case and with quotes, and everything else as it is."""

    def __init__(self, rewrite: Rewrite) -> None:
        self._rewrite = rewrite
        self._text = b""
        self._raw_element = b""
        """The element whose content is read, if it has no tags."""
        self._has_ended = False
        """Whether the rest is copied."""

    def feed(self, data: bytes) -> bytes:
        """Return what can be written: all but a tag that is incomplete."""
        if self._has_ended:
            return data
        self._text += data
        written: list[bytes] = []
        position = 0
        while (end := self._step(position, written)) > position:
            position = end
        self._text = self._text[position:]
        if len(self._text) > _MAX_TAG:
            self._has_ended = True
            written.append(self._text)
            self._text = b""
        return b"".join(written)

    def finish(self) -> bytes:
        """Return the rest, without a tag that has no end."""
        is_tag = not self._raw_element and re.match(rb"</?[a-zA-Z]", self._text)
        return b"" if is_tag else self._text

    def _step(self, position: int, written: list[bytes]) -> int:
        """Write the next text or tag; return its end, or the position if it is incomplete."""
        if self._raw_element:
            return self._skip_content(position, written)
        text = self._text
        found = _START.search(text, position)
        if found is None:
            end = len(text) - 1 if text.endswith(b"<") else len(text)
        elif found.start() > position:
            end = found.start()
        elif found[0][1:].isalpha():
            return self._write_tag(position, written)
        else:
            end = _end_of_markup(text, position)
        written.append(text[position:end])
        return end

    def _skip_content(self, position: int, written: list[bytes]) -> int:
        if self._raw_element == b"plaintext":
            end = len(self._text)
        else:
            endings = _RAW_END.finditer(self._text, position)
            found = next((each for each in endings if each[1].lower() == self._raw_element), None)
            # A part of the end may have been received.
            end = (
                max(position, len(self._text) - len(self._raw_element) - 2)
                if found is None
                else found.start()
            )
            if found is not None:
                self._raw_element = b""
        written.append(self._text[position:end])
        return self._step(end, written) if end == position and not self._raw_element else end

    def _write_tag(self, position: int, written: list[bytes]) -> int:
        tag = _parse_tag(self._text, position + 1)
        if tag is None:
            return position
        links = _LINKS.get(tag.name, frozenset())
        attributes = [
            (key, self._rewrite(value) if key in links else value) for key, value in tag.attributes.items()
        ]
        written.append(b"<" + tag.name)
        written += [b' %s="%s"' % (key, _escape(value)) for key, value in attributes]
        written.append(b"/>" if self._text[tag.end - 2 : tag.end] == b"/>" else b">")
        if tag.name in _RAW_ELEMENTS:
            self._raw_element = tag.name
        return tag.end


def _end_of_markup(text: bytes, position: int) -> int:
    """Return the end of an end tag, a comment or a declaration; the position if it is incomplete."""
    if text.startswith(b"<!-", position):
        if len(text) < position + 4:
            return position
        if text.startswith(b"<!--", position):
            comment = _COMMENT_END.search(text, position + 2)
            return position if comment is None else comment.end()
    if text.startswith(b"</", position) and text[position + 2 : position + 3].isalpha():
        tag = _parse_tag(text, position + 2)
        return position if tag is None else tag.end
    end = text.find(b">", position)
    return position if end < 0 else end + 1


class _Tag(Struct, frozen=True):
    name: bytes
    attributes: Mapping[bytes, str]
    end: int


def _parse_tag(text: bytes, position: int) -> _Tag | None:
    """Return the tag whose name is at a position; None if it is incomplete."""
    name = _match(_NAME, text, position)
    attributes: dict[bytes, str] = {}
    position = name.end()
    while True:
        position = _match(_SPACE, text, position).end()
        if position == len(text):
            return None
        if text[position] == ord(">"):
            return _Tag(name[0].lower(), attributes, position + 1)
        key = _match(_KEY, text, position)
        equals = _match(_EQUALS, text, key.end())
        position, value = equals.end(), b""
        if position == len(text):
            return None
        if b"=" in equals[0]:
            quote = text[position : position + 1]
            if quote in (b'"', b"'"):
                end = text.find(quote, position + 1)
                if end < 0:
                    return None
                value, position = text[position + 1 : end], end + 1
            else:
                bare = _match(_BARE, text, position)
                value, position = bare[0], bare.end()
        attributes.setdefault(key[0].lower(), _unescape(value))


def _match(pattern: re.Pattern[bytes], text: bytes, position: int) -> "re.Match[bytes]":
    found = pattern.match(text, position)
    assert found is not None  # each of them matches nothing, too
    return found


def _unescape(value: bytes) -> str:
    return _ENTITY.sub(_character, value.decode("utf-8", _ERRORS).replace("\r\n", "\n"))


def _character(entity: "re.Match[str]") -> str:
    decimal, hexadecimal, name = entity.groups()
    if name:
        return html5.get(name, entity[0])
    number = int(decimal) if decimal else int(hexadecimal, 16)
    is_character = 0 < number < 0x110000 and not 0xD800 <= number < 0xE000
    return chr(number) if is_character else "\N{REPLACEMENT CHARACTER}"


_ESCAPES: Final[Any] = str.maketrans(
    {"&": "&amp;", "'": "&#39;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "\r": "&#13;"}
)


def _escape(value: str) -> bytes:
    return value.translate(_ESCAPES).encode("utf-8", _ERRORS)
