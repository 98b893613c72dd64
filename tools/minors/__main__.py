"""What maintainers run for minor releases of Kubernetes. Needs a Go toolchain, and downloads modules into its cache.

python -m tools.minors new 1.38.0        run the routine for a new minor, as `make minor RELEASE=1.38.0`
python -m tools.minors derive            derive the data of the newest minor
python -m tools.minors older             derive the data of the older minors
python -m tools.minors files             list the compared files of the newest minor, for the test of the owners
python -m tools.minors patches           print the published releases that are newer than the served ones
python -m tools.minors build 1.37.2 DIR  build the components of a release
"""

import argparse
import re
import subprocess
from pathlib import Path

from tools.minors.derive import derive_newest
from tools.minors.gomodules import Release, build_components
from tools.minors.new import STEPS, ReleaseError, run_steps
from tools.minors.older import derive_older_minors
from tools.minors.owners import UPSTREAM_FILES
from tools.minors.patches import newer_published
from tools.minors.releases import CURRENT
from tools.minors.upstream import upstream_files


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tools.minors", description="Maintain minor releases of Kubernetes."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("older", help="derive the data of the older minors")
    commands.add_parser("files", help="list the compared files of the current release")
    commands.add_parser("derive", help="derive the data of the newest minor")
    commands.add_parser("patches", help="print the published releases that are newer than the served ones")
    built = commands.add_parser("build", help="build the components of a release")
    built.add_argument("release", type=_release, help="such as 1.37.2")
    built.add_argument("folder", type=Path, help="the folder for the three programs")
    new = commands.add_parser("new", help="run the routine for a new minor")
    new.add_argument("release", type=_release, help="such as 1.37.2")
    new.add_argument(
        "--since",
        type=_release,
        help=f"the release to compare with (the served one of the same minor, or {CURRENT.version})",
    )
    new.add_argument("--step", choices=STEPS, help="run this step only")
    new.add_argument(
        "--only", default="", metavar="PATH", help="changes for files of ours whose paths start with this"
    )
    new.add_argument("--diff", action="store_true", help="print the changed lines of each declaration")
    options = parser.parse_args()
    try:
        _run(options)
    except ReleaseError as error:
        raise SystemExit(f"error: {error}") from error
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"{' '.join(error.cmd)} failed: {(error.output or b'').decode().strip()}") from error


def _run(options: argparse.Namespace) -> None:
    if options.command == "new":
        run_steps(options.release, options)
    elif options.command == "build":
        build_components(options.release, options.folder)
    elif options.command == "patches":
        for minor, version in newer_published().items():
            print(f"{minor}: {version} is published")
    elif options.command == "derive":
        print(derive_newest())
    elif options.command == "files":
        UPSTREAM_FILES.write_text("".join(f"{path}\n" for path in upstream_files(CURRENT)))
    else:
        print(derive_older_minors())


def _release(text: str) -> Release:
    number = r"(?:0|[1-9]\d*)"
    match = re.fullmatch(rf"(1\.{number})\.{number}(-(alpha|beta|rc)\.{number})?", text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f'"{text}" is no release, expected one such as 1.38.0 or 1.38.0-rc.1'
        )
    return Release(match[1], text)


if __name__ == "__main__":
    main()
