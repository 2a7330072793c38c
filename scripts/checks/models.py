#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that the models and the code name the same steps.

usage: models.py ROOT

Every model in src/worker/models names the steps that matter in comments, after itself:

    atomic { buffer_is_empty -> published = until };  /* [park: publish] */

The comment at the step in the code that this stands for ends with the same name, on one line. So whoever changes one of the
two finds the other; and a step that was left out, added or renamed on one side alone is noticed here.
"""

import pathlib
import re
import sys

# What begins like a name, and a name. Attributes have two colons.
BEGINNING = re.compile(r"\[([a-z_]+):(?!:)")
NAME = re.compile(r"\[([a-z_]+): ([a-z]+(?: [a-z]+)*)\]")
COMMENT_IN_MODEL = re.compile(r"/\*.*?\*/", re.DOTALL)
COMMENT_IN_CODE = re.compile(r"//[^\n]*")


def names_in(path, comment):
    """The names in the comments of a file, each with its line; None for what only begins like one."""
    for text in comment.finditer(path.read_text(encoding="utf-8")):
        for beginning in BEGINNING.finditer(text.group()):
            line = text.string.count("\n", 0, text.start() + beginning.start()) + 1
            name = NAME.match(text.group(), beginning.start())
            yield line, name and name.groups()


def collect(root, paths, comment, models, wrong):
    """Where each name stands, for the names of these files that are sound."""
    found = {}
    for path in paths:
        where = path.relative_to(root)
        for line, name in names_in(path, comment):
            if name is None:
                wrong.append(f"{where}:{line}: a step is named as [model: some words], on one line")
            elif name[0] not in models:
                wrong.append(f"{where}:{line}: there is no model {name[0]}.pml for [{name[0]}: {name[1]}]")
            elif path.suffix == ".pml" and name[0] != path.stem:
                wrong.append(f"{where}:{line}: [{name[0]}: {name[1]}] belongs to another model")
            else:
                found.setdefault(name, f"{where}:{line}")
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    source = root / "src"
    paths = sorted((source / "worker" / "models").glob("*.pml"))
    models = {path.stem for path in paths}
    wrong = []
    modelled = collect(root, paths, COMMENT_IN_MODEL, models, wrong)
    coded = collect(root, sorted([*source.rglob("*.cpp"), *source.rglob("*.hpp")]), COMMENT_IN_CODE, models, wrong)
    for name in sorted(modelled.keys() - coded.keys()):
        wrong.append(f"{modelled[name]}: no comment in src names [{name[0]}: {name[1]}]")
    for name in sorted(coded.keys() - modelled.keys()):
        wrong.append(f"{coded[name]}: {name[0]}.pml does not name [{name[0]}: {name[1]}]")
    for model in sorted(models - {name[0] for name in modelled}):
        wrong.append(f"src/worker/models/{model}.pml: it names none of its steps, as in [{model}: some words]")
    print("\n".join(wrong) if wrong else f"   {len(modelled)} steps of {len(models)} models are named in the code")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
