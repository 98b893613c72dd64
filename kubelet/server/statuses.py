"""The Status at the end of an exec or attach."""

import orjson


def success_status() -> bytes:
    return orjson.dumps({"metadata": {}, "status": "Success"})


def exit_status(code: int) -> bytes:
    """Return the Status of a command that ended with an exit code, as in version 4 of the protocol."""
    if code == 0:
        return success_status()
    return orjson.dumps(
        {
            "metadata": {},
            "status": "Failure",
            "message": f"command terminated with non-zero exit code: exit status {code}",
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
        }
    )


def failure_status(message: str) -> bytes:
    """Return the Status of a command that could not be run."""
    return orjson.dumps(
        {
            "metadata": {},
            "status": "Failure",
            "message": f"Internal error occurred: {message}",
            "reason": "InternalError",
            "details": {"causes": [{"message": message}]},
            "code": 500,
        }
    )


def error_status(error: BaseException) -> bytes:
    """Return the Status of an unexpected error."""
    return failure_status(f"{type(error).__name__}: {error}")


def plain_status(status: bytes) -> bytes:
    """Convert a Status for versions before 4, which have plain messages; empty for success."""
    tree = orjson.loads(status)
    return b"" if tree["status"] == "Success" else str(tree["message"]).encode()
