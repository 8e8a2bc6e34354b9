"""The Python sessions in Markdown files, as tests: every ```pycon block is run, and prints what stands there.

`python test/snippets.py check docs/walk.md` tells where it doesn't. `python test/snippets.py write docs/walk.md` writes
the answers anew: read the difference before committing it.
"""
from __future__ import annotations

import contextlib
import doctest
import io
import re
import sys
import traceback
from pathlib import Path
from typing import Any

BLOCK = re.compile(r"^```pycon\n(.*?)^```", re.M | re.S)
FLAGS = doctest.ELLIPSIS  # "..." stands for what differs from machine to machine


def examples(markdown: str) -> list[doctest.Example]:
    """All inputs of all blocks, with their answers and lines."""
    found = []
    for block in BLOCK.finditer(markdown):
        first = markdown.count("\n", 0, block.start(1))
        for example in doctest.DocTestParser().get_examples(block[1]):
            example.lineno += first
            found.append(example)
    return found


class Session:
    """Python, asked one input after the other."""

    def __init__(self, path: Path):
        self.path, self.names = path, dict[str, Any]()

    def answer(self, example: doctest.Example) -> str:
        """What Python prints for an input. Code knows the file and the line that it stands in."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            try:
                source = "\n" * example.lineno + example.source
                exec(compile(source, self.path.name, "single"), self.names)
            except Exception as error:
                return "Traceback (most recent call last):\n" + traceback.format_exception_only(error)[-1]
        return printed.getvalue()


def is_right(example: doctest.Example, got: str) -> bool:
    """Is this what the file says?"""
    return doctest.OutputChecker().check_output(example.want, got, FLAGS)


def differences(path: Path) -> list[str]:
    """The inputs whose answers are not what the file says."""
    session, wrong = Session(path), []
    for example in examples(path.read_text(encoding="utf-8")):
        got = session.answer(example)
        if not is_right(example, got):
            place = f"{path.name}:{example.lineno + 1}"
            wrong.append(f"{place}: {example.source}the file says\n{example.want}Python says\n{got}")
    return wrong


def with_answers(path: Path) -> str:
    """The file with the answers that Python gives today. What is right as it stands, with its "...", stays."""
    session, lines = Session(path), path.read_text(encoding="utf-8").splitlines(keepends=True)
    answers = {}
    for example in examples("".join(lines)):
        got = session.answer(example)
        first = example.lineno + example.source.count("\n")
        answers[first] = (first + example.want.count("\n"), example.want if is_right(example, got) else got)
    for first, (end, text) in sorted(answers.items(), reverse=True):
        lines[first:end] = [text]
    return "".join(lines)


if __name__ == "__main__":
    command, *names = sys.argv[1:]
    for file in map(Path, names):
        if command == "write":
            file.write_text(with_answers(file), encoding="utf-8")
        elif wrong := differences(file):
            sys.exit("\n".join(wrong))
