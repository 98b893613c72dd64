"""The pages that nginx makes itself: those of statuses, and lists of folders. Pure."""

from collections.abc import Sequence
from html import escape
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

_REASONS: Final = {
    302: "Found", 413: "Request Entity Too Large", 414: "Request-URI Too Large", 416: "Requested Range Not Satisfiable", 503: "Service Temporarily Unavailable",
    504: "Gateway Time-out", 405: "Not Allowed", 401: "Authorization Required",
}  # fmt: skip
_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}
GIF: Final = b"GIF89a\x01\x00\x01\x00\x80\x01\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x01\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02L\x01\x00;"
STUB_STATUS: Final = "Active connections: 1 \nserver accepts handled requests\n {0} {0} {0} \nReading: 0 Writing: 1 Waiting: 0 \n"


def page(status: int) -> bytes:
    """Return the page of a status."""
    phrase = _REASONS.get(status) or _PHRASES.get(status, "")
    title = f"{status} {phrase}".strip()
    return (
        f"<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center><h1>{title}</h1></center>\r\n<hr><center>nginx</center>\r\n"
        "</body>\r\n</html>\r\n"
    ).encode()


def listing(uri: str, names: Sequence[str]) -> bytes:
    """Return the page of a folder."""
    rows = "".join(f'<a href="{quote(name)}">{escape(name)}</a>\r\n' for name in names)
    title = f"Index of {escape(uri)}"
    text = (
        f'<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<h1>{title}</h1><hr><pre><a href="../">../</a>\r\n{rows}</pre><hr></body>\r\n'
        "</html>\r\n"
    )
    return text.encode()
