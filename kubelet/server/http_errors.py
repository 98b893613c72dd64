"""Error responses of a kubelet."""


class HttpError(Exception):
    """An error response in plain text."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
