"""Responses of a kubelet that are no success."""


class HttpError(Exception):
    """In plain text, as a kubelet writes them."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
