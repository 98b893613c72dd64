"""The command `mockube`."""


def main() -> int:
    return 0
