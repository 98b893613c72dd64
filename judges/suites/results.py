"""Reads the results of go test, Maven and cargo, as whether each test passed."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

import orjson

_CARGO = re.compile(r"test (\S+)(?: - .*)? \.\.\. (ok|FAILED)")


def of_go(lines: Iterable[str]) -> dict[str, bool]:
    """Return the results of `go test -json`: of tests without their groups, and of packages that failed without a test."""
    results: dict[str, bool] = {}
    failed_packages = set()
    for line in lines:
        if not line.startswith("{"):
            continue
        event = orjson.loads(line)
        passed = {"pass": True, "fail": False}.get(event["Action"])
        if passed is None:
            continue
        package = event.get("Package") or event.get("ImportPath", "")
        if "Test" in event:
            results[f"{package}.{event['Test']}"] = passed
        elif not passed:
            failed_packages.add(package)
    groups = {name.rpartition("/")[0] for name in results if "/" in name.rpartition(".")[2]}
    tests = {name: passed for name, passed in results.items() if name not in groups or not passed}
    silent = {
        package: False
        for package in failed_packages
        if not any(name.startswith(f"{package}.") and not passed for name, passed in tests.items())
    }
    return {**tests, **silent}


def of_maven(folder: Path) -> dict[str, bool]:
    """Return the results in the reports of Surefire and Failsafe; a test that was not run has none."""
    results: dict[str, bool] = {}
    for path in [*folder.rglob("surefire-reports/TEST-*.xml"), *folder.rglob("failsafe-reports/TEST-*.xml")]:
        for case in ET.parse(path).iter("testcase"):
            if case.find("skipped") is None:
                passed = case.find("failure") is None and case.find("error") is None
                results[f"{case.get('classname')}.{case.get('name')}"] = passed
    return results


def of_cargo(lines: Iterable[str]) -> dict[str, bool]:
    matches = (_CARGO.match(line) for line in lines)
    return {match[1]: match[2] == "ok" for match in matches if match}


def unexpected(results: Mapping[str, bool], failures: Mapping[str, str]) -> list[str]:
    """Return what differs from the list of failures."""
    failed = [name for name, passed in results.items() if not passed and name not in failures]
    passing = [name for name in failures if results.get(name)]
    return [
        *(f"fails: {name}" for name in failed),
        *(f"is listed as failing, and passes: {name}" for name in passing),
    ]
