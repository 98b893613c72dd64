"""The mark of a store that is half restored: who finds it must use nothing of what is there.

It lies outside of the keys that are restored, so that who lists them does not meet it.
"""

from mockube.etcd.errors import KVError
from mockube.etcd.kv import KV, Range

_FOLDER = b"mockube-restoring"


class HalfRestored(KVError):
    """Somebody began to restore into the store and did not come to the end."""

    def __init__(self, source: str) -> None:
        super().__init__(
            f"the store is half restored, from {source}: restore it again, with --replace, before it is used"
        )


def mark_of(root: bytes) -> bytes:
    """The key that is there as long as the keys below `root` are being restored; its value names the source."""
    return _FOLDER + root


async def refuse_half_restored(kv: KV, root: bytes) -> None:
    found = (await kv.range(Range(key=mark_of(root)))).kvs
    if found:
        raise HalfRestored(found[0].value.decode(errors="replace"))
