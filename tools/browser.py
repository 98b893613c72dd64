"""Install what tests of the page need into a folder: a Chromium if the machine has none, and axe. `make browser` runs it.

Both are npm packages. The one of Chromium has its binary inside, made for functions of a cloud: with the libraries that these lack, and
without what only a window needs. Nothing is installed on the system, and no other address than the registry is used.
"""

import argparse
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

FOLDER: Final = Path(sys.prefix) / "cache/browser"
"""Beside the caches of the other tools, which `make` sets."""
NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM: Final = "@sparticuz/chromium@153.0.0"
AXE: Final = "axe-core@4.14.1"
_MODULES: Final = "node_modules"
_ARCHIVES: Final = ("al2023.tar.br", "swiftshader.tar.br", "fonts.tar.br")
_INSTALL_SECONDS: Final = 600
_UNPACK: Final = """
const { createReadStream, createWriteStream } = require("node:fs");
const { createBrotliDecompress } = require("node:zlib");
createReadStream(process.argv[1]).pipe(createBrotliDecompress()).pipe(createWriteStream(process.argv[2]));
"""
_LAUNCHER: Final = """#!/bin/sh
LD_LIBRARY_PATH="{folder}/lib:{folder}" FONTCONFIG_PATH="{folder}" exec "{folder}/chromium" "$@"
"""
_FONTS: Final = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>/usr/share/fonts</dir>
  <dir>{folder}/fonts</dir>
  <cachedir>{folder}/fonts-cache</cachedir>
</fontconfig>
"""
"""The fonts of the machine, which have more symbols, and those of the package, whose own file names other folders.

Without a font, Chromium ends when it shows a text.
"""


class NotInstalled(Exception):
    """Why there is no browser."""


def find_browser(folder: Path = FOLDER) -> Path | None:
    """Return the program of a browser: that of the machine, or the one that was installed."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    launcher = folder / "launch"
    return Path(found) if found else launcher if launcher.exists() else None


def find_axe(folder: Path = FOLDER) -> Path | None:
    """Return the script of axe, if it was installed."""
    script = folder / _MODULES / "axe-core/axe.min.js"
    return script if script.exists() else None


def install(folder: Path, *, needs_browser: bool) -> None:
    """Install what is missing; raise NotInstalled with the reason."""
    missing = [AXE] if find_axe(folder) is None else []
    if needs_browser:
        if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
            raise NotInstalled(f"{CHROMIUM} has a program for Linux on x86_64 alone: install Chromium")
        missing.append(CHROMIUM)
    if not missing:
        return
    folder.mkdir(parents=True, exist_ok=True)
    _run(
        "npm",
        "install",
        "--no-audit",
        "--no-fund",
        "--ignore-scripts",
        "--no-save",
        "--prefix",
        str(folder),
        *missing,
    )
    if needs_browser:
        chromium, launcher = folder / "chromium", folder / "launch.new"
        _unpack(folder / _MODULES / "@sparticuz/chromium/bin", chromium)
        (chromium / "fonts.conf").write_text(_FONTS.format(folder=chromium))
        launcher.write_text(_LAUNCHER.format(folder=chromium))
        launcher.chmod(0o755)
        _run(str(launcher), "--version")
        launcher.replace(folder / "launch")  # only one that runs is found


def _unpack(source: Path, target: Path) -> None:
    target.mkdir(exist_ok=True)
    program = target / "chromium"
    _run("node", "-e", _UNPACK, str(source / "chromium.br"), str(program))
    program.chmod(0o755)
    for name in _ARCHIVES:
        archive = target / name.removesuffix(".br")
        _run("node", "-e", _UNPACK, str(source / name), str(archive))
        with tarfile.open(archive) as opened:
            opened.extractall(target, filter="data")
        archive.unlink()
    shutil.rmtree(source.parent)  # it is unpacked; a next installation begins anew


def _run(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_INSTALL_SECONDS)
    except FileNotFoundError as error:
        raise NotInstalled(f"{command[0]} is not installed") from error
    except subprocess.TimeoutExpired as error:
        raise NotInstalled(f"{command[0]} did not end in {_INSTALL_SECONDS} seconds") from error
    if done.returncode:
        raise NotInstalled(f"{' '.join(command[:2])}: {(done.stdout + done.stderr).strip()[-500:]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--own", action="store_true", help="install a Chromium even if the machine has one")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where to install it")
    options = parser.parse_args()
    try:
        install(options.folder.resolve(), needs_browser=options.own or find_browser(options.folder) is None)
    except NotInstalled as problem:
        print(f"Tests in a browser will not run: {problem}", file=sys.stderr)
        return 1
    print(f"{find_browser(options.folder)}, {find_axe(options.folder)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
