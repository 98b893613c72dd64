"""Bearer tokens from a file, as kube-apiserver's `--token-auth-file` has them: token,user,uid,"group,group"."""

import csv
import logging
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from mockube.apiserver.user import AUTHENTICATED, User

from .authenticators import KnownToken, token_digest

LOG = logging.getLogger(__name__)


class StaticTokens:
    """Tokens of a file, which are valid for the audiences of the server."""

    def __init__(self, users: Mapping[str, User], audiences: Sequence[str] = ()) -> None:
        self._users = {token_digest(token): user for token, user in users.items()}
        self._audiences = audiences

    async def authenticate_token(self, token: str, audiences: Sequence[str]) -> KnownToken | None:
        user = self._users.get(token_digest(token))
        if user is None or not self._audiences:
            return None if user is None else KnownToken(user, audiences)
        shared_audiences = [audience for audience in audiences if audience in self._audiences]
        return KnownToken(user, shared_audiences) if shared_audiences else None


class BadTokenFile(ValueError):
    """A line of the file is not token,user,uid and perhaps groups."""


def read(path: Path) -> Mapping[str, User]:
    with path.open(encoding="utf-8", newline="") as lines:
        return parse(lines, str(path))


def parse(lines: Iterable[str], name: str) -> Mapping[str, User]:
    users: dict[str, User] = {}
    for number, row in enumerate(csv.reader(lines, skipinitialspace=True), start=1):
        if not row:
            continue
        columns = [column.strip() for column in row]
        if len(columns) < 3 or not (columns[0] and columns[1]):
            raise BadTokenFile(f'{name}:{number}: a line must be token,user,uid and optionally "group,group"')
        token, user, uid, *groups = columns
        if token in users:
            LOG.warning("%s:%d: duplicate token: the last line is used", name, number)
        named = [group.strip() for group in groups[0].split(",") if group.strip()] if groups else []
        users[token] = User(name=user, uid=uid, groups=(*named, AUTHENTICATED))
    return users
