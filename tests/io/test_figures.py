"""Does the same figure give the same bytes?"""

from __future__ import annotations

from pathlib import Path

import pytest

from artist.io.figures import new_figure, save_figure

pytest.importorskip("matplotlib")


def test_the_last_bits_of_a_layout_change_no_byte(tmp_path: Path) -> None:
    """Processors differ in them, so a layout moved by 1e-12 inches stands for another one."""
    for name, pad_in in (("here", 0.05), ("there", 0.05 + 1e-12)):
        figure = new_figure()
        engine = figure.get_layout_engine()
        assert engine is not None
        engine.set(w_pad=pad_in, h_pad=pad_in)
        figure.add_subplot().plot([1, 20_000], [0.3, 7])
        save_figure(figure, tmp_path / f"{name}.svg")
    assert (tmp_path / "here.svg").read_bytes() == (tmp_path / "there.svg").read_bytes()
