"""Scripts written for tinygrad's public API, run with nothing changed but the module's name.

Each compares what it computes with numpy, so that it tests whichever library it imports. They were run under tinygrad
0.14, too.
"""

from __future__ import annotations

from pathlib import Path

import pytest

SCRIPTS = sorted(Path(__file__).resolve().parent.joinpath("scripts").glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script(path, capsys):
    text = path.read_text()
    assert "from tinygrad import" in text
    exec(compile(text.replace("tinygrad", "tensor_engine"), str(path), "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out.startswith(path.stem)
