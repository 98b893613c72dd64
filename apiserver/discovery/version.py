"""What release of Kubernetes the server speaks as, and that it is mockube that speaks."""

import platform
from importlib.metadata import version as installed

MAJOR, MINOR, PATCH = "1", "36", "3"
DOCUMENT = {
    "major": MAJOR,
    "minor": MINOR,
    "emulationMajor": MAJOR,
    "emulationMinor": MINOR,
    "minCompatibilityMajor": MAJOR,
    "minCompatibilityMinor": "35",
    "gitVersion": f"v{MAJOR}.{MINOR}.{PATCH}",
    "gitCommit": f"mockube-{installed('mockube')}",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": f"python{platform.python_version()}",
    "compiler": platform.python_implementation().lower(),
    "platform": f"{platform.system().lower()}/{platform.machine()}",
}
