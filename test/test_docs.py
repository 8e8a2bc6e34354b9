"""What the walk and the reference page say is what the code does."""
from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from snippets import differences

ROOT = Path(__file__).resolve().parent.parent


def test_every_answer_in_the_walk_is_the_one_that_python_gives() -> None:
    # in a process of its own: the walk shows numbers that count what was made before
    command = [sys.executable, "test/snippets.py", "check", "docs/walk.md"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_wrong_answer_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```pycon\n>>> 1 + 1\n2\n>>> 1 + 2\n4\n```\n")
    assert len(differences(page)) == 1 and "page.md:4" in differences(page)[0]


def test_the_reference_page_is_that_of_the_code() -> None:
    page = runpy.run_path(str(ROOT / "tools" / "reference.py"))["page"]()
    assert page == (ROOT / "docs" / "reference.md").read_text(encoding="utf-8"), "run: python tools/reference.py"


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    targets = [link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8"))]
    missing = [target for target in targets if target and "://" not in target and not (page.parent / target).exists()]
    assert not missing
