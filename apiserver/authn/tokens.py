"""Bearer tokens from a file, as kube-apiserver's `--token-auth-file` has them: token,user,uid,"group,group"."""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path

from apiserver.rest.call import User

AUTHENTICATED = "system:authenticated"


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
        if len(row) < 3 or not row[0]:
            raise BadTokenFile(f'{name}:{number}: a line must be token,user,uid and perhaps "group,group"')
        token, user, uid, *groups = (column.strip() for column in row)
        named = [group.strip() for group in groups[0].split(",") if group.strip()] if groups else []
        users[token] = User(name=user, uid=uid, groups=(*named, AUTHENTICATED))
    return users
