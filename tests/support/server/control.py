"""Objects and paths of the group `control.mockube.dev`."""

API_VERSION = "control.mockube.dev/v1alpha1"
PATH = f"/apis/{API_VERSION}"


def control_object(kind, name="", **fields):
    """An object of the group, with the fields beside its metadata."""
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name} if name else {}, **fields}


def causes(answer):
    """The field and the message of each cause of a refusal."""
    return [(cause["field"], cause["message"]) for cause in answer.body["details"]["causes"]]
