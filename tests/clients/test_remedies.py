"""The commands that `why` offers are accepted as kubectl sends them."""

import asyncio
import shlex
import shutil

import pytest

from tests.support.processes.kubectl_binaries import require_kubectl
from tests.support.server.apiserver import running_with_roles
from tests.support.server.situations import SituationCluster
from tests.support.situations import SITUATIONS

VERBS = ("patch", "scale", "label", "taint", "uncordon", "set", "delete", "create")
"""Those that have `--dry-run`; `rollout resume` and `certificate approve` have none."""


def arguments_of(command):
    """Return the arguments of a command that changes something, as a dry run; None for other ones."""
    program, *arguments = shlex.split(command)
    verb = arguments[2] if arguments[0] == "-n" else arguments[0]
    if program != "kubectl" or verb not in VERBS or "--cert=FILE" in arguments:
        return None
    return [*arguments, "--dry-run=server"]


async def run(program, url, arguments):
    process = await asyncio.create_subprocess_exec(
        program,
        f"--server={url}",
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode, output.decode()


async def allow_everybody(client):
    """Let clients without credentials do everything: kubectl sends none without TLS."""
    group = "rbac.authorization.k8s.io"
    everybody = ("system:authenticated", "system:unauthenticated")
    binding = {
        "metadata": {"name": "everybody"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": group, "kind": "Group", "name": name} for name in everybody],
    }
    assert (await client.post(f"/apis/{group}/v1/clusterrolebindings", binding)).status == 201


@pytest.mark.release
async def test_commands_are_accepted_as_kubectl_sends_them():
    program, refused, count = require_kubectl(shutil.which("kubectl")), [], 0
    async with running_with_roles() as client:
        await allow_everybody(client)
        cluster = SituationCluster(client)
        await cluster.begin()
        for situation in SITUATIONS:
            async with cluster.explained(situation) as status:
                commands = [each["command"] for each in status.get("remedies", ()) if "command" in each]
                for arguments in filter(None, map(arguments_of, commands)):
                    code, output = await run(program, client.url, arguments)
                    count += 1
                    if code:
                        refused.append((situation.name, arguments, output))
    assert not refused
    assert count > 40, "most situations have such a command"
