"""What the passes make of six kernels is what was agreed on; golden_kernels.py tells how to agree anew."""
from __future__ import annotations

import pytest
from codegen.golden_kernels import FOLDER, KERNELS, golden_text


@pytest.mark.parametrize("name", KERNELS)
def test_the_passes_make_what_is_agreed_on(name: str) -> None:
    expected = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert golden_text(name) == expected, "if this is better: python test/codegen/golden_kernels.py"


def test_every_file_has_a_kernel() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(KERNELS)
