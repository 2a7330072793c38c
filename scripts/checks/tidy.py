# SPDX-License-Identifier: MIT
"""Runs clang-tidy over source files, except those that were found tidy before.

usage: tidy.py ROOT COMPILE_COMMANDS JOBS CHECKS_FOR_PROGRAMS

ROOT is the top directory of the repository. The library is looked at with .clang-tidy, examples and the demonstration with
CHECKS_FOR_PROGRAMS. What a file includes counts as part of it, comments too, and so do the settings and the version of
clang-tidy: if none of it has changed since it was found tidy, on this machine and in whatever checkout, it is not looked at
again. What is known is kept in ~/.cache/chime/tidy (or $XDG_CACHE_HOME); delete it to begin anew.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import shlex
import subprocess
import sys

TIDY = "clang-tidy-19"
COMPILER = "clang++-19"
# Options of a compiler that are about what it writes.
WITHOUT_VALUE = ("-c", "-MD", "-MMD")
WITH_VALUE = ("-o", "-MF", "-MT")


def source_as_compiled(entry):
    """All that the compiler sees of a file: its options, and the text with comments, which may speak to clang-tidy. Or None."""
    arguments = iter(shlex.split(entry["command"])[1:])
    kept = []
    for argument in arguments:
        if argument in WITH_VALUE:
            next(arguments, None)
        elif argument not in WITHOUT_VALUE and not argument.startswith("-W"):
            kept.append(argument)
    answer = subprocess.run([COMPILER, "-E", "-C", "-w", *kept], cwd=entry["directory"], capture_output=True, check=False)
    return " ".join(kept).encode() + b"\0" + answer.stdout if answer.returncode == 0 else None


def fingerprint(entry, root, settings):
    """The same for the same source in another checkout; None if there is no telling."""
    text = source_as_compiled(entry)
    if text is None:
        return None
    # Names of files say where a line comes from, not what it is.
    text = text.replace(os.fsencode(root) + b"/", b"")
    return hashlib.sha256(settings + b"\0" + text).hexdigest()


def main():
    root, commands, jobs, checks_for_programs = sys.argv[1:]
    known = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "chime" / "tidy"
    try:
        known.mkdir(parents=True, exist_ok=True)
    except OSError:
        known = None
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout
    own_settings = pathlib.Path(root, ".clang-tidy").read_bytes()

    entries = {}
    for entry in json.loads(pathlib.Path(commands).read_text(encoding="utf-8")):
        name = os.path.relpath(os.path.join(entry["directory"], entry["file"]), root)
        if name.startswith(("src/", "examples/", "demo/")):
            entries[name] = entry

    def look_at(name):
        """(was it looked at, what is wrong with it)"""
        checks = [] if name.startswith("src/") else ["--checks=" + checks_for_programs]
        settings = version + own_settings + name.encode() + b"\0".join(each.encode() for each in checks)
        mark = fingerprint(entries[name], root, settings) if known else None
        if mark and (known / mark).exists():
            return False, ""
        answer = subprocess.run(
            [TIDY, "--quiet", "-p", os.path.dirname(commands), *checks, "--extra-arg=-Wno-unknown-warning-option", name],
            cwd=root, capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            return True, answer.stdout or answer.stderr
        if mark:
            (known / mark).touch()
        return True, ""

    with concurrent.futures.ThreadPoolExecutor(int(jobs)) as pool:
        answers = list(pool.map(look_at, sorted(entries)))
    wrong = [text for _, text in answers if text]
    print("".join(wrong), end="")
    if wrong:
        return 1
    looked_at = sum(was for was, _ in answers)
    print(f"   {len(answers)} source files and what they include are tidy; {len(answers) - looked_at} were known to be")
    return 0


if __name__ == "__main__":
    sys.exit(main())
