# SPDX-License-Identifier: MIT
"""Reads what the last runs of the tests have left behind in build/."""

import json
import re
import subprocess
import xml.etree.ElementTree as xml

absent = "not run"
lost = "run, but not kept"


class Figures:
    """Everything that is known of the last runs. What was not run is None, or empty."""

    def __init__(self, root):
        self.root = root
        self.reports = root / "build" / "reports"
        self.cases = {name: self.read_report(name) for name in ("release", "asan", "tsan", "packaging", "fuzz")}
        self.folders = self.read_folders()

    def read_report(self, name):
        """Of every test: its name, whether it has passed, its seconds, and what it has printed."""
        path = self.reports / f"{name}.xml"
        if not path.exists() or path.stat().st_size == 0:
            return []
        # One that says itself that it makes no sense in this build does not count.
        return [(case.get("name"), case.get("status") == "run", float(case.get("time") or 0),
                 case.findtext("system-out") or "") for case in xml.parse(path).iter("testcase")
                if case.get("status") != "notrun"]

    def read_folders(self):
        """Which folder below tests/ the program of each test was built from."""
        build = self.root / "build" / "release"
        if not (build / "CTestTestfile.cmake").exists():
            return {}
        listed = subprocess.run(["ctest", "--test-dir", str(build), "--show-only=json-v1"], capture_output=True,
                                text=True, check=True).stdout
        folders = {}
        for test in json.loads(listed)["tests"]:
            found = re.search(r"/tests/(\w+)/", " ".join(test.get("command", [])))
            folders[test["name"]] = found.group(1) if found else "base"
        return folders

    def in_folder(self, folder, report="release"):
        return [case for case in self.cases[report] if self.folders.get(case[0]) == folder]

    def sum_of(self, pattern, report="release"):
        """Adds up a number that tests print; None: none was run. A report may have lost the end of what was printed."""
        if not self.cases[report]:
            return None
        numbers = [int(number) for case in self.cases[report] for number in re.findall(pattern, case[3])]
        return sum(numbers) if numbers else lost

    def models(self):
        """Of every model: its name, its states, and how many of its mutants have failed as they should."""
        result = []
        for name, passed, _, output in self.cases["release"]:
            if not name.startswith("models."):
                continue
            model = name.removeprefix("models.")
            states = re.search(rf"^{model} .* ([0-9.e+]+) states", output, re.MULTILINE)
            mutants = re.search(r"all its (\d+) mutants fail", output)
            result.append((model, float(states.group(1)) if states else None,
                           int(mutants.group(1)) if passed and mutants else None))
        return sorted(result)

    def mutants(self):
        """What `chime_shim_tests --mutants` has said last, if it was kept."""
        path = self.reports / "mutants.txt"
        if not path.exists():
            return None
        found = re.findall(r"^(\d+) mutants: (\d+) noticed, (\d+) proven harmless, (\d+) not noticed",
                           path.read_text(encoding="utf-8"), re.MULTILINE)
        return tuple(map(int, found[-1])) if found else None

    def old_bugs(self):
        """How many bugs of history were put back, in the shim and in the wheel, and how many of them were noticed."""
        found = [match for case in self.cases["release"]
                 for match in re.findall(r"^(\d+) old bugs: (\d+) noticed", case[3], re.MULTILINE)]
        return tuple(sum(int(number) for number in column) for column in zip(*found)) if found else None

    def interleavings(self):
        """How many schedules `scripts/soak --interleavings` has tried last."""
        path = self.reports / "interleavings.txt"
        found = re.findall(r"^\d+ of \d+ scenarios, (\d+) schedules", path.read_text(encoding="utf-8"),
                           re.MULTILINE) if path.exists() else []
        return int(found[-1]) if found else None

    def coverage(self):
        return self.read_json(self.root / "build" / "coverage" / "summary.json")

    def soak(self):
        return self.read_json(self.reports / "soak.json")

    @staticmethod
    def read_json(path):
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
