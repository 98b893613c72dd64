"""The error of a pack's webhook that denies a request, as a real server reports it."""

from mockube.apimachinery.status import ApiError


def denial_error(name: str, problem: str, code: int) -> ApiError:
    return ApiError(f'admission webhook "{name}" denied the request: {problem}', code=code)
