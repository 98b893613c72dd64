"""Errors that a future or a stream keeps, after they were handled."""


def drop_frames(error: BaseException) -> None:
    """Drop the frames of an error and of its context, which was handled.

    A frame that waited for a future or a stream refers to it. If that has the error, they are a cycle with all that their
    callers refer to, such as a response, and the garbage collector does not free what is old.
    """
    context = error.__context__
    error.__traceback__ = error.__context__ = None
    if context is not None:
        context.__traceback__ = None
