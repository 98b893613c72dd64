"""Why a Stage document cannot be taken: said by name, before anything is simulated."""


class StageError(ValueError):
    """The message names what is not understood."""
