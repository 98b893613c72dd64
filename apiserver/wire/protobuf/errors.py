"""What can go wrong with protobuf, by name."""


class ProtobufError(ValueError):
    """The bytes are no such message, or the tree cannot be written as one."""


class UnknownKind(ProtobufError):
    """Kubernetes has no protobuf message for this kind: custom resources and Tables have none."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(f'no protobuf message for kind "{kind}" of version "{api_version}"')
        self.api_version = api_version
        self.kind = kind
