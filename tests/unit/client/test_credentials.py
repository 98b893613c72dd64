import pytest

from mockube.client.sender import FileToken, FixedToken
from mockube.client.wire import Unreachable
from mockube.component_base.clock import SteppedClock


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "token"
    file.write_text("one\n")
    return file


async def test_fixed_token_has_no_replacement():
    credential = FixedToken("one")
    assert await credential.token() == "one"
    assert not credential.forget("one")


async def test_token_file_is_re_read_after_interval(file):
    clock = SteppedClock()
    credential = FileToken(file, clock)
    assert await credential.token() == "one"
    file.write_text("two\n")
    clock.advance(59.0)
    assert await credential.token() == "one"
    clock.advance(1.0)
    assert await credential.token() == "two"


async def test_rejected_token_file_is_re_read(file):
    credential = FileToken(file, SteppedClock())
    await credential.token()
    assert not credential.forget("one")
    file.write_text("two\n")
    assert credential.forget("one")
    assert await credential.token() == "two"
    assert credential.forget("one")


async def test_missing_token_file_is_unreachable(tmp_path):
    with pytest.raises(Unreachable, match=r"no token: .*No such file"):
        await FileToken(tmp_path / "absent", SteppedClock()).token()
