"""Run the recordings' own runner, which waits less, or longer, where the recording depends on it.

It does not wait half a minute, twice, for a response that never comes in the recording. A recorded pause after the creation of a
definition lasts until the definition is established, which takes longer on a busy machine.

`python -m tests.support.recorded.conversation_runner RUNNER run …` has the options of the runner.
"""

import importlib.util
import sys
from itertools import pairwise
from pathlib import Path

from tests.support.processes.acknowledged_writes import until

NO_RESPONSE = -2
"""The recorded status of a request without a response, such as an endless watch."""
SECONDS = 3
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def load(path):
    spec = importlib.util.spec_from_file_location("runner", path)
    runner = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(runner)
    return runner


class PatientServer:
    """The runner's server: it waits only briefly for responses to some paths, and for definitions that are created before a pause."""

    def __init__(self, server, silent_paths, definitions):
        self._server = server
        self._silent_paths = silent_paths
        self._definitions = definitions
        self._created = []

    def send(self, request):
        while self._created:
            self._await_definition(self._created.pop())
        reply = self._send(request)
        if reply["status"] == 201 and created_definition(request) in self._definitions:
            self._created.append(created_definition(request))
        return reply

    def _await_definition(self, name):
        def is_decided():
            found = self._server.send({"method": "GET", "path": f"{DEFINITIONS}/{name}"})
            return found["status"] != 200 or is_established_or_refused(found["body"])

        until(is_decided, f"the definition {name} is established")

    def _send(self, request):
        if request["path"] not in self._silent_paths:
            return self._server.send(request)
        # The time to wait is that of a connection.
        self._close()
        try:
            return self._server.send(request, SECONDS)
        finally:
            self._close()

    def _close(self):
        connection = getattr(self._server.local, "conn", None)
        if connection is not None:
            connection.close()
            self._server.local.conn = None


def created_definition(request):
    """Return the name of the definition that a request creates, or None."""
    body = request.get("body")
    is_creation = (
        request.get("method") == "POST" and request["path"] == DEFINITIONS and isinstance(body, dict)
    )
    return (body.get("metadata") or {}).get("name") if is_creation else None


def is_established_or_refused(definition):
    """Whether a definition is established, or never will be."""
    conditions = {
        each["type"]: each["status"] for each in definition.get("status", {}).get("conditions") or ()
    }
    return conditions.get("Established") == "True" or conditions.get("NamesAccepted") == "False"


def main(path, *arguments):
    runner = load(Path(path))
    converse = runner.converse

    def converse_briefly(server, case, namespace):
        silent_paths = {
            runner.fill(step["request"]["path"], namespace, [])
            for step in case["steps"]
            if step.get("response", {}).get("status") == NO_RESPONSE
        }
        definitions = {
            runner.fill(created_definition(step["request"]), namespace, [])
            for step, following in pairwise(case["steps"])
            if "pause" in following["request"] and "pause" not in step["request"]
        }
        return converse(PatientServer(server, silent_paths, definitions - {None}), case, namespace)

    runner.converse = converse_briefly
    sys.argv[1:] = arguments
    return runner.main()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
