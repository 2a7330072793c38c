#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: check_limits.py CTEST BUILD_DIRECTORY

Looks at every test that CTest knows: each has a timeout, and one that says where its threads stand has the time for that.
Exit code: 0 all is well, 1 something is not.
"""

import json
import subprocess
import sys

SECONDS_TO_TELL = 4


def complaints(test):
    properties = {each["name"]: each["value"] for each in test.get("properties", [])}
    timeout = properties.get("TIMEOUT")
    if timeout is None:
        yield "has no TIMEOUT"
        return
    for setting in properties.get("ENVIRONMENT", []):
        name, _, value = setting.partition("=")
        if name == "CHIME_TIME_LIMIT" and int(value) + SECONDS_TO_TELL > timeout:
            yield f"is killed after {timeout} s, and says where it stands only after {value} s"


def main():
    listing = subprocess.run([sys.argv[1], "--test-dir", sys.argv[2], "--show-only=json-v1"], check=True, capture_output=True)
    # A program that was not built has one test, which says so.
    tests = [each for each in json.loads(listing.stdout)["tests"] if not each["name"].endswith("_NOT_BUILT")]
    wrong = [f"{each['name']} {complaint}" for each in tests for complaint in complaints(each)]
    print("\n".join([*wrong, f"{len(tests)} tests, {len(wrong)} complaints"]))
    return 1 if wrong or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
