"""Programs read zeros and random bytes from devices."""

import pytest

from tests.unit.container_runtime.simulated.shell.test_scripts import run


@pytest.mark.parametrize(
    ("script", "output"),
    [
        ("head -c 16 /dev/urandom | wc -c", "16\n"),
        ("head -c 16 </dev/random | wc -c", "16\n"),
        ("tr -dc a-z </dev/urandom | head -c 20 | wc -c", "20\n"),
        ("LC_ALL=C tr -dc 'A-Za-z0-9' </dev/urandom | fold -w 32 | head -n 1 | wc -c", "33\n"),
        ("head -c 3 /dev/zero | od -An -tx1", " 00 00 00\n"),
        ("echo lost >/dev/zero; echo $?", "0\n"),
        ("cat /dev/null; [ -c /dev/null ] && [ -e /dev/null ] && ! [ -f /dev/null ] && echo null", "null\n"),
        (
            "echo in | cat /dev/stdin; echo out | tee /dev/stdout; exec 4<<E\nfour\nE\ncat /dev/fd/4",
            "in\nout\nout\nfour\n",
        ),
        (
            "echo a | cp /dev/stdin a; cp a /dev/stdout; dd if=/dev/zero bs=3 count=2 2>/dev/null | wc -c",
            "a\n6\n",
        ),
        (
            "a=$(head -c 9 /dev/urandom | base64); b=$(head -c 9 /dev/urandom | base64); [ $a != $b ] && echo 2",
            "2\n",
        ),
    ],
)
def test_devices_have_bytes(script, output):
    assert run("sh", "-c", script)[:2] == (output, "")
