"""The program of `mockube.pyz`, which any Python from 3.11 on runs: `python3 mockube.pyz up`.

The first run installs mockube and the locked versions of its dependencies into a folder of the user's cache, one for each file and
Python; later runs start from there. The dependencies have compiled parts for one system and Python, so the file cannot contain them.
"""

import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

MINIMUM = (3, 11)


def environment_folder(archive: Path, variables: Mapping[str, str]) -> Path:
    """Return the folder of the virtual environment for this archive and this Python."""
    cache = Path(variables.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    digest = hashlib.sha256(archive.read_bytes() + sys.base_prefix.encode()).hexdigest()[:16]
    return cache / "mockube" / f"{digest}-{sys.implementation.cache_tag}"


def install(archive: Path, environment: Path) -> None:
    """Make the environment, unless another process has made it meanwhile."""
    import fcntl  # noqa: PLC0415 - Windows has none

    environment.parent.mkdir(parents=True, exist_ok=True)
    with (environment.parent / f"{environment.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_complete(environment):
            shutil.rmtree(environment, ignore_errors=True)
            print(f"mockube: installing into {environment}; this happens once ...", file=sys.stderr)
            try:
                install_packages(archive, environment)
            except BaseException:  # also Ctrl+C: what is half installed is not left behind
                shutil.rmtree(environment, ignore_errors=True)
                raise
            (environment / "complete").touch()


def install_packages(archive: Path, environment: Path) -> None:
    version = subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True, check=False)
    has_pip = version.returncode == 0
    venv.create(environment, symlinks=True, with_pip=not has_pip)
    python = environment / "bin/python"
    pip = [sys.executable, "-m", "pip", "--python", python] if has_pip else [python, "-m", "pip"]
    command = [*pip, "install", "--quiet", "--no-input", "--disable-pip-version-check", "--no-deps"]
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(archive) as files:
        files.extractall(folder)
        wheels = Path(folder).glob("*.whl")  # mockube and its extras
        run_pip([*command, "--require-hashes", "-r", Path(folder, "run.txt")])
        run_pip([*command, "--no-index", *wheels])


def run_pip(command: Sequence[str | Path]) -> None:
    """Run pip in a process group of its own, which Ctrl+C kills: pip and the pip that it starts would print tracebacks."""
    with subprocess.Popen(command, process_group=0) as process:
        try:
            code = process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    if code:
        raise subprocess.CalledProcessError(code, command)


def is_complete(environment: Path) -> bool:
    return (environment / "complete").exists()


def typed_program() -> str:
    """Return what the user typed before the arguments, such as `python3 mockube.pyz`."""
    return shlex.join(sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1])


def main() -> None:
    try:
        start()
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)


def start() -> None:
    archive = Path(sys.argv[0]).resolve()
    environment = environment_folder(archive, os.environ)
    if not is_complete(environment):
        try:
            install(archive, environment)
        except subprocess.CalledProcessError:
            sys.exit(
                "mockube: pip could not install it, and said why, above. Without a network, set PIP_FIND_LINKS to a folder of wheels."
            )
        except OSError as error:
            sys.exit(
                f"mockube: {error.filename}: {error.strerror}. Set XDG_CACHE_HOME to a folder that you may write to."
            )
    program = str(environment / "bin/mockube")
    # What mockube tells the user to type is not a path in the cache.
    os.execve(program, [program, *sys.argv[1:]], {**os.environ, "MOCKUBE_PROGRAM": typed_program()})


if sys.platform == "win32":
    sys.exit("mockube does not run on Windows itself: run it in WSL 2")
if sys.version_info < MINIMUM:
    sys.exit("mockube needs Python 3.11 or newer; this is %d.%d" % sys.version_info[:2])  # noqa: UP031 - of any Python 3
if __name__ == "__main__":
    main()
