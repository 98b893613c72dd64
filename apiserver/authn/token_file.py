"""Bearer tokens from a file, as kube-apiserver's `--token-auth-file` has them: token,user,uid,"group,group"."""

import csv
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path

from mockube.apiserver.user import User

LOG = logging.getLogger(__name__)
AUTHENTICATED = "system:authenticated"


def with_authenticated(user: User) -> User:
    """Return the user with the group system:authenticated, unless the user is unauthenticated."""
    if user.name == "system:anonymous" or {AUTHENTICATED, "system:unauthenticated"} & set(user.groups):
        return user
    return User(name=user.name, uid=user.uid, groups=(*user.groups, AUTHENTICATED), extra=user.extra)


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
