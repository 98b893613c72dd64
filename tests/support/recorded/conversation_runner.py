"""Run the recordings' own runner; it does not wait half a minute, twice, for a response that never comes in the recording.

`python -m tests.support.recorded.conversation_runner RUNNER run …` has the options of the runner.
"""

import importlib.util
import sys
from pathlib import Path

NO_RESPONSE = -2
"""The recorded status of a request without a response, such as an endless watch."""
SECONDS = 3


def load(path):
    spec = importlib.util.spec_from_file_location("runner", path)
    runner = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(runner)
    return runner


class BriefServer:
    """The runner's server: it waits only briefly for responses to some paths."""

    def __init__(self, server, silent_paths):
        self._server = server
        self._silent_paths = silent_paths

    def send(self, request):
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


def main(path, *arguments):
    runner = load(Path(path))
    converse = runner.converse

    def converse_briefly(server, case, namespace):
        silent_paths = {
            runner.fill(step["request"]["path"], namespace, [])
            for step in case["steps"]
            if step.get("response", {}).get("status") == NO_RESPONSE
        }
        return converse(BriefServer(server, silent_paths), case, namespace)

    runner.converse = converse_briefly
    sys.argv[1:] = arguments
    return runner.main()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
