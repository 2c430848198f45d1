"""Do tables show what they were given?"""

from __future__ import annotations

from artist.cli.output import print_table


def test_square_brackets_are_text_and_no_markup(capsys) -> None:
    print_table("runs[1]", ("loss[bold]",), [("las[2].csv",), ("[red]fifo",)])
    shown = capsys.readouterr().out
    for text in ("runs[1]", "loss[bold]", "las[2].csv", "[red]fifo"):
        assert text in shown
