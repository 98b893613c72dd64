"""URLs as wget and curl read them, and redirects."""

from urllib.parse import urljoin, urlsplit

from msgspec import Struct

from mockube.apimachinery.hosts import url_host


class Url(Struct, frozen=True, kw_only=True):
    scheme: str
    host: str
    port: int
    target: str
    """The path with its query."""
    user: str = ""
    text: str

    @property
    def authority(self) -> str:
        """The host, with the port if it is not the scheme's."""
        default = 443 if self.scheme == "https" else 80
        return url_host(self.host) if self.port == default else f"{url_host(self.host)}:{self.port}"

    @property
    def file_name(self) -> str:
        path = self.target.partition("?")[0]
        return path.rpartition("/")[2]

    def join(self, location: str) -> "Url":
        return parse_url(urljoin(self.text, location))


def parse_url(text: str) -> Url:
    """Parse a URL; without a scheme it is http. Raise ValueError for one that is no URL."""
    full = text if "://" in text else f"http://{text}"
    parts = urlsplit(full)
    if parts.scheme not in ("http", "https"):
        raise ValueError(f"unsupported protocol {parts.scheme}")
    if not parts.hostname or any(character.isspace() for character in full):
        raise ValueError("no host")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    user = f"{parts.username}:{parts.password or ''}" if parts.username else ""
    return Url(scheme=parts.scheme, host=parts.hostname, port=port, target=target, user=user, text=full)
