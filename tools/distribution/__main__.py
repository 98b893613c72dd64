"""Build everything that a release consists of into `dist/`: `make dist`. The same commit gives the same bytes.

| file | what |
|---|---|
| `mockube-VERSION-py3-none-any.whl`, `mockube-VERSION.tar.gz` | the wheel, and the source distribution |
| `mockube_NAME-VERSION-py3-none-any.whl` | the wheel of each extra; its source is in the source distribution |
| `mockube.pyz` | one file that any Python 3.11+ runs, see `launcher.py` |
| `mockube-VERSION.cdx.json` | the bill of materials, in the format of CycloneDX |
| `SHA256SUMS` | the checksums of the others |
"""

import argparse
import hashlib
import shutil
import stat
import sys
import time
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Final

from tools.distribution.bill import bill_of_materials
from tools.distribution.source_tree import changed_files, commit_time, is_checkout, listed, tracked_tree
from tools.packages import EXTRAS, ROOT, build_package

LAUNCHER: Final = Path(__file__).with_name("launcher.py")
REQUIREMENTS: Final = ROOT / "requirements" / "run.txt"
PYZ: Final = "mockube.pyz"
SUMS: Final = "SHA256SUMS"
EARLIEST: Final = 315532800
"""The first time that an archive can have, 1980."""


def build(folder: Path, epoch: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    with tracked_tree(ROOT) as tree:
        wheels = [
            build_package("wheel", folder, tree=each, SOURCE_DATE_EPOCH=str(epoch))
            for each in (tree, *(tree / extra.relative_to(ROOT) for extra in EXTRAS))
        ]
        build_package("sdist", folder, tree=tree, SOURCE_DATE_EPOCH=str(epoch))
    wheel = wheels[0]
    write_pyz(folder / PYZ, wheels, epoch)
    name = "-".join(wheel.name.split("-")[:2])
    (folder / f"{name}.cdx.json").write_bytes(bill_of_materials(wheel, REQUIREMENTS, epoch))
    (folder / SUMS).write_text(checksums(path for path in sorted(folder.iterdir()) if path.name != SUMS))


def write_pyz(path: Path, wheels: Iterable[Path], epoch: int) -> None:
    members = {"__main__.py": LAUNCHER, "run.txt": REQUIREMENTS, **{wheel.name: wheel for wheel in wheels}}
    with path.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        _write_zip(file, members, epoch)
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def _write_zip(file: IO[bytes], members: Mapping[str, Path], epoch: int) -> None:
    date = time.gmtime(max(epoch, EARLIEST))
    with zipfile.ZipFile(file, "w") as archive:
        for name, path in members.items():
            member = zipfile.ZipInfo(name, (date[0], date[1], date[2], date[3], date[4], date[5]))
            member.external_attr = 0o644 << 16
            member.compress_type = zipfile.ZIP_STORED if name.endswith(".whl") else zipfile.ZIP_DEFLATED
            archive.writestr(member, path.read_bytes())


def checksums(paths: Iterable[Path]) -> str:
    """Return the lines that `sha256sum --check` reads."""
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in paths)


def check_committed(root: Path, *, may_differ: bool) -> None:
    """Refuse files that differ from the commit, because nobody could build the release again, and name what is not packed."""
    changed, untracked = changed_files(root)
    if changed and not may_differ:
        raise SystemExit(
            f"mockube: these files differ from the commit: {listed(changed)}. Commit them, or build with --dirty"
        )
    if untracked:
        print(f"mockube: not packed, because git does not track it: {listed(untracked)}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.distribution", description="Build a release.")
    parser.add_argument(
        "folder", nargs="?", type=Path, default=ROOT / "dist", help="the folder to write (dist)"
    )
    parser.add_argument(
        "--dirty", action="store_true", help="pack files that differ from the commit as they are"
    )
    options = parser.parse_args()
    folder, epoch = options.folder, commit_time(ROOT)
    if is_checkout(ROOT):
        check_committed(ROOT, may_differ=options.dirty)
    build(folder, epoch)
    for path in sorted(folder.iterdir()):
        print(f"{path.stat().st_size:10,} {path.name}")


if __name__ == "__main__":
    main()
