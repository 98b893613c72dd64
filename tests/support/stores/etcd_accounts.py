"""Switch a server's authentication on, with a user who may use the keys under a prefix."""

import base64

import aiohttp

from mockube.etcd.kv import prefix_end
from mockube.etcd.remote.transport import EtcdCredentials

ROOT = EtcdCredentials(user="root", password="of all")
USER = EtcdCredentials(user="somebody", password="secret")


async def require_login(url, prefix):
    first, end = (base64.b64encode(key).decode() for key in (prefix, prefix_end(prefix)))
    may_use = {"permType": "READWRITE", "key": first, "range_end": end}
    steps = [
        ("user/add", {"name": ROOT.user, "password": ROOT.password}),
        ("user/grant", {"user": ROOT.user, "role": "root"}),
        ("role/add", {"name": "prefix"}),
        ("role/grant", {"name": "prefix", "perm": may_use}),
        ("user/add", {"name": USER.user, "password": USER.password}),
        ("user/grant", {"user": USER.user, "role": "prefix"}),
        ("enable", {}),
    ]
    async with aiohttp.ClientSession(raise_for_status=True) as session:
        for path, body in steps:
            async with session.post(f"{url}/v3/auth/{path}", json=body) as answer:
                await answer.read()
