# SPDX-License-Identifier: MIT
"""Runs clang-tidy over source files, except those that were found tidy before.

usage: tidy.py ROOT COMPILE_COMMANDS JOBS CHECKS_FOR_PROGRAMS

ROOT is the top directory of the repository. The library is looked at with .clang-tidy, examples and the demonstration with
CHECKS_FOR_PROGRAMS. All that a file includes counts as part of it, byte for byte, and so do how it is compiled, the settings and
the version of clang-tidy: if none of it has changed since it was found tidy, on this machine and in whatever checkout, it is
not looked at again. What is known is kept in ~/.cache/chime/tidy (or $XDG_CACHE_HOME); delete it to begin anew.
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


def options_of(entry):
    """How a file is compiled, without what is about the output; the file is among it."""
    arguments = iter(shlex.split(entry["command"])[1:])
    kept = []
    for argument in arguments:
        if argument in WITH_VALUE:
            next(arguments, None)
        elif argument not in WITHOUT_VALUE and not argument.startswith("-W"):
            kept.append(argument)
    return kept


def files_read(entry):
    """The file and all that it includes, or nothing if there is no telling."""
    answer = subprocess.run([COMPILER, "-M", "-w", *options_of(entry)], cwd=entry["directory"], capture_output=True, text=True,
                            check=False)
    if answer.returncode != 0:
        return []
    _, _, names = answer.stdout.replace("\\\n", " ").partition(":")
    return [os.path.normpath(os.path.join(entry["directory"], name)) for name in names.split()]


def settings_of(path, root):
    """The .clang-tidy files that count for it."""
    folder = pathlib.Path(path).parent
    while True:
        settings = folder / ".clang-tidy"
        if settings.exists():
            yield str(settings)
        if str(folder) in (root, folder.root):
            return
        folder = folder.parent


def fingerprint(entry, root, how):
    """The same for the same source in another checkout; None if there is no telling."""
    names = files_read(entry)
    if not names:
        return None
    sum_of_all = hashlib.sha256(how)
    sum_of_all.update(" ".join(options_of(entry)).replace(root + "/", "").encode())
    for name in sorted({*names, *settings_of(names[0], root), os.path.abspath(__file__)}):
        sum_of_all.update(b"\0" + name.removeprefix(root + "/").encode() + b"\0")
        sum_of_all.update(hashlib.sha256(pathlib.Path(name).read_bytes()).digest())
    return sum_of_all.hexdigest()


def place_of_what_is_known():
    """A directory, or None if there can be none."""
    try:
        cache = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
        known = pathlib.Path(cache) / "chime" / "tidy"
        known.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):
        return None
    return known if os.access(known, os.W_OK) else None


def main():
    root, commands, jobs, checks_for_programs = sys.argv[1:]
    known = place_of_what_is_known()
    version = subprocess.run([TIDY, "--version"], capture_output=True, check=True).stdout

    entries = {}
    for entry in json.loads(pathlib.Path(commands).read_text(encoding="utf-8")):
        name = os.path.relpath(os.path.join(entry["directory"], entry["file"]), root)
        if name.startswith(("src/", "examples/", "demo/")):
            entries[name] = entry

    def look_at(name):
        """(was it looked at, what is wrong with it)"""
        checks = [] if name.startswith("src/") else ["--checks=" + checks_for_programs]
        how = version + name.encode() + b"\0".join(each.encode() for each in checks)
        mark = fingerprint(entries[name], root, how) if known else None
        if mark and (known / mark).exists():
            return False, ""
        answer = subprocess.run(
            [TIDY, "--quiet", "-p", os.path.dirname(commands), *checks, "--extra-arg=-Wno-unknown-warning-option", name],
            cwd=root, capture_output=True, text=True, check=False)
        if answer.returncode != 0:
            return True, answer.stdout or answer.stderr or f"{name}: clang-tidy ended with {answer.returncode}\n"
        if mark and fingerprint(entries[name], root, how) == mark:  # It may have been changed meanwhile.
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
