"""Do tables show what they were given?"""

from __future__ import annotations

import pytest

from artist.cli.commands.compare import _spread
from artist.cli.output import print_table


def test_square_brackets_are_text_and_no_markup(capsys) -> None:
    print_table("runs[1]", ("loss[bold]",), [("las[2].csv",), ("[red]fifo",)])
    shown = capsys.readouterr().out
    for text in ("runs[1]", "loss[bold]", "las[2].csv", "[red]fifo"):
        assert text in shown


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ((4.0, 1.0, 3.0, 2.0), "2.5 [1 .. 4]"),  # of an even number: between the middle two
        ((9.0, 1.0, 2.0), "2 [1 .. 9]"),
        ((123_456.0, 0.012, 1000.5), "1,000 [0.012 .. 123,456]"),
    ],
)
def test_medians_of_a_comparison(values: tuple[float, ...], shown: str) -> None:
    assert _spread(values) == shown
