#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks that nothing is awaited in a way that g++ 12 gets wrong.

usage: awaits.py ROOT < LIST_OF_FILES
       awaits.py --try

Inside the parentheses of a condition or a loop: it makes a coroutine that never begins to run of one that has a `co_await`
there and no local variable. Whether it has one is easily changed by somebody who knows nothing of that, so it is forbidden
everywhere: await into a variable, and test that. Comments and documents are read as well, because people copy from them.

With a temporary that has a destructor: it destroys a lambda with captures, or an aggregate, twice if it is made inside of
the `co_await` expression. Give it a name first. As far as the text can tell: a lambda that captures something by value, and
braces, unless they are those of a duration or a number. Read are the code of the library, of the examples, the
demonstration and the benchmarks, and the blocks of code in the documents. Where the temporary is known to have no
destructor, a comment behind one of its lines says so, with the reason:

    co_await pool.submit([count] { return sum(count); });  // awaits: a number has no destructor

--try checks that the check finds what it should, and nothing else.
"""

import pathlib
import re
import sys

READ = {".hpp", ".cpp", ".md"}
# Where temporaries are looked for. Tests are compiled and run with g++ 12 and with sanitizers, and are not copied from.
PUBLIC = {"include", "src", "examples", "demo", "bench", "docs", "README.md"}
KEYWORD = re.compile(r"\b(if|while|switch|for)\s*(?:constexpr\s*)?\(")
# What may hold a parenthesis that opens or closes nothing. It is replaced by as many blanks, so that places stay the same.
LITERAL = re.compile(r'"(?:\\.|[^"\\\n])*"|\'\\?.\'')
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
FENCED = re.compile(r"^[ ]*(```+|~~~+)[^\n]*\n(.*?)^[ ]*\1[ ]*$", re.MULTILINE | re.DOTALL)
AWAIT = re.compile(r"(?<!operator )\bco_await\b")
MARKER = re.compile(r"// awaits: \S")
CLOSING = {"(": ")", "[": "]", "{": "}"}
# What stands before the braces of something that has no destructor.
PLAIN = re.compile(r"(?:\bchrono::\w+(?:<[^<>]*>)?|\b(?:u?int\w*_t|size_t|duration|time_point|int|unsigned|long|bool|char|double|float))\s*$")
NAME = re.compile(r"[\w>]\s*$")
LAMBDA_HEAD = re.compile(r"\s*(?:<[^<>]*>\s*)?(?:\(|\{|mutable\b|noexcept\b|->)")


def blanks(found):
    return re.sub(r"[^\n]", " ", found.group())


def without_literals(text):
    return LITERAL.sub(lambda found: " " * len(found.group()), text)


def only_code(path, text):
    """Of a document the blocks of code, without comments."""
    if path.suffix == ".md":
        kept = [(found.start(2), found.end(2)) for found in FENCED.finditer(text)]
        is_kept = bytearray(len(text))
        for begin, end in kept:
            is_kept[begin:end] = b"\1" * (end - begin)
        text = "".join(each if is_kept[place] or each == "\n" else " " for place, each in enumerate(text))
    return COMMENT.sub(blanks, without_literals(text))


def end_of(text, begin):
    """Where what opens at `begin` is closed; the end of the text if it never is."""
    opening, closing = text[begin], CLOSING[text[begin]]
    depth = 0
    for place in range(begin, len(text)):
        depth += (text[place] == opening) - (text[place] == closing)
        if depth == 0:
            return place
    return len(text)


def line_of(text, place):
    return text.count("\n", 0, place) + 1


def owns_something(captures):
    """Whether a lambda may have something to destroy: it has not, if all it has are references and `this`."""
    captures = [each.strip() for each in captures.split(",") if each.strip()]
    return any(each != "this" and not each.startswith("&") for each in captures)


def temporaries(text, begin):
    """What is made in the expression that is awaited from `begin` on, and may have a destructor: where, and what it is."""
    place, depth = begin, 0
    while place < len(text):
        each = text[place]
        if each == "[" and not re.search(r"[\w)\]]\s*$", text[begin:place]):
            end = end_of(text, place)
            if LAMBDA_HEAD.match(text, end + 1):
                if owns_something(text[place + 1:end]):
                    yield place, "a lambda that captures by value"
                body = text.find("{", end)
                place = end_of(text, body) + 1 if body >= 0 else len(text)
                continue
        if each == "{":
            before = text[begin:place]
            if not NAME.search(before) and depth == 0:
                return  # The block of a statement: the expression is over.
            if not PLAIN.search(before):
                yield place, "something in braces"
            place = end_of(text, place) + 1
            continue
        if each in "([":
            depth += 1
        elif each in ")]}":
            depth -= 1
        if depth < 0 or (depth == 0 and each in ";,"):
            return
        place += 1


def check_conditions(path, text):
    text = without_literals(text)
    for found in KEYWORD.finditer(text):
        begin = found.end() - 1
        awaited = AWAIT.search(text, begin, end_of(text, begin))
        if awaited:
            yield (f"{path}:{line_of(text, awaited.start())}: co_await inside {found.group(1)} (...): "
                   "await into a variable first, because of g++ 12")


def check_temporaries(path, text):
    if path.parts[0] not in PUBLIC:
        return
    lines = text.splitlines()
    code = only_code(path, text)
    for awaited in AWAIT.finditer(code):
        first = line_of(code, awaited.start())
        for place, what in temporaries(code, awaited.end()):
            last = line_of(code, place)
            if not any(MARKER.search(line) for line in lines[first - 1:last]):
                yield (f"{path}:{last}: {what} inside a co_await expression: give it a name first, because g++ 12 destroys it "
                       "twice; or say behind it: // awaits: why it has no destructor")


def check(path, text):
    yield from check_conditions(path, text)
    yield from check_temporaries(path, text)


FOUND = (
    "auto page = co_await pool.submit([page] { return compress(page); });",
    "co_await pool.submit([=]() mutable { work(); });",
    "co_await pool.submit([&, page = std::move(page)] { work(page); });",
    "co_await pool.submit(\n    [it = make()]() -> int { return it.get(); });",
    "co_await send(request{name, 5});",
    "co_await send({name, 5});",
    "co_await opened{name};",
    "co_return co_await first(second(std::vector<int>{1, 2}));",
    "spawn(ctx, [&]() -> task<> { co_await send(request{name}); }());",
    "if (const auto why = co_await pause) work();",
    "while (!co_await ended(1)) work();",
)
NOT_FOUND = (
    "const auto job = pool.submit([page] { return compress(page); });\nco_await job;",
    "co_await pool.submit([] { return 1; });",
    "co_await pool.submit([&] { return request{name}; });",
    "co_await pool.submit([this, &page] { work(page); });",
    "co_await sleep_for(std::chrono::seconds{1});",
    "co_await sleep_for(std::chrono::duration<double>{0.5}, token);",
    "co_await sleep_for(delays[2], token); const request sent{name};",
    "for (auto& each : all) co_await each;\nconst request sent{name};",
    "use(co_await answer, request{name});",
    "spawn(ctx, [page]() -> task<> { co_await answer; }());",
    "co_await pool.submit([count] { return count; });  // awaits: a number has no destructor",
    "// co_await pool.submit([page] { return 1; }) is destroyed twice.",
    'co_await say("[page] { }");',
    "awaiter operator co_await() const { return awaiter{*this}; }",
)


def try_itself():
    path = pathlib.Path("examples/tried.cpp")
    wrong = [f"not found: {text}" for text in FOUND if not list(check(path, text))]
    wrong += [f"found: {text}" for text in NOT_FOUND if list(check(path, text))]
    document = pathlib.Path("docs/tried.md")
    prose = "Do not write `co_await send(request{name})`."
    wrong += [f"found: {prose}" for _ in check(document, prose)]
    wrong += ["not found in a document"] if not list(check(document, f"```cpp\n{FOUND[0]}\n```\n")) else []
    return wrong


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    wrong = try_itself()
    if wrong or sys.argv[1] == "--try":
        print("\n".join(wrong) if wrong else f"   finds {len(FOUND) + 1}, and leaves {len(NOT_FOUND) + 1} alone")
        sys.exit(1 if wrong else 0)
    root = pathlib.Path(sys.argv[1])
    paths = [pathlib.Path(line) for line in sys.stdin.read().splitlines()]
    paths = [path for path in paths if path.suffix in READ]
    wrong = [reason for path in paths for reason in check(path, (root / path).read_text(encoding="utf-8"))]
    print("\n".join(wrong) if wrong else f"   {len(paths)} files await nothing that g++ 12 gets wrong")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
