"""The limits of the streams of containers.

The attack: whoever may exec into a pod, attach to it, read its logs or connect to its ports sends bytes to the process that runs
all containers, and need not read what is sent back. Each limit bounds what one such client makes the process keep.
"""

from typing import Final

MAX_UNREAD: Final = 256 << 10
"""Unread input, after which the client has to wait."""
MAX_DISCARDED: Final = 16 << 20
"""What a program can write after its client has left, before it ends."""
MAX_TAIL_BYTES: Final = 10 << 20
"""What `tailLines` buffers: the size of a kubelet's log file."""
MAX_TERMINAL_SIZE: Final = 1024
"""One size of a terminal."""
MAX_LOCAL_RESPONSE: Final = 16 << 20
"""A response of a process of a pod, which runs on this machine."""
