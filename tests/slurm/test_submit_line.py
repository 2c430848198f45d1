"""Are options in the submit line of sacct read as by sbatch, salloc and srun?"""

from __future__ import annotations

import pytest

from artist.slurm.submit_line import options_of, with_option


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("", {}),
        ("sbatch", {}),
        ("sbatch --nice=5 train.sh --nice=7 -d singleton", {"nice": "5"}),
        ("sbatch -N 2 -a 0-9%2 train.sh -a 0-9%5", {"N": "2", "array": "0-9%2"}),
        ("sbatch -N2 -a0-9%2 x", {"N": "2", "array": "0-9%2"}),
        ("sbatch -Hs -d afterok:7 x", {"s": "", "dependency": "afterok:7"}),
        ("sbatch --array=0-9%1 --array 0-9%8 x", {"array": "0-9%8"}),
        ("sbatch --array=0-9%1 -a 0-9 x", {"array": "0-9"}),
        ("sbatch --dependency afterok:7 x", {"dependency": "afterok:7"}),
        ("sbatch --depend=afterok:7 --req x", {"dependency": "afterok:7", "requeue": ""}),
        ("sbatch --nice 5", {"nice": ""}),  # 5 is the script
        ("sbatch --ntasks 4 --ntasks-per-node=8 x", {"ntasks": "4", "ntasks-per-node": "8"}),
        ("sbatch --exclude n1 --hold x --requeue", {"exclude": "n1", "hold": ""}),
        ("sbatch --hold -- x --requeue", {"hold": ""}),
        ("sbatch - --requeue", {}),
        ("sbatch --wait --requeue x", {"wait": "", "requeue": ""}),
        ("/usr/bin/srun --wait 0 -W 5 --nice=3 x --nice=4", {"wait": "0", "W": "5", "nice": "3"}),
        ("sbatch -W --nice=3 x", {"W": "", "nice": "3"}),
        ("sbatch --wrap sleep 5 --nice=3", {"wrap": "sleep"}),
        ("sbatch -p", {"p": ""}),
        ("srun -W5 -K1 -I60 --nice=3 x", {"W": "5", "K": "1", "I": "60", "nice": "3"}),
        ("srun -K -vK0 -d afterok:7 x --nice=3", {"K": "0", "dependency": "afterok:7"}),
        ("salloc -kI --nice=3 x", {"k": "I", "nice": "3"}),
        ("srun --debugger-test --nice=3 x", {"debugger-test": "", "nice": "3"}),
        ("srun --kill-on-bad-exit --nice=3 x", {"kill-on-bad-exit": "", "nice": "3"}),
    ],
)
def test_options_end_at_the_script_and_the_last_counts(line: str, found: dict[str, str]) -> None:
    assert options_of(line) == found


def test_of_two_options_the_order_tells_which_came_last() -> None:
    assert list(options_of("sbatch --requeue --no-requeue --requeue x")) == [
        "no-requeue",
        "requeue",
    ]


@pytest.mark.parametrize(
    ("line", "longer"),
    [
        ("", "sbatch --array=0%2"),
        ("sbatch -a 0-9%5 -N 2 x -a 3", "sbatch -a 0-9%5 -N 2 --array=0%2 x -a 3"),
        ("sbatch -a 0-9", "sbatch -a 0-9 --array=0%2"),
    ],
)
def test_an_option_that_is_added_counts(line: str, longer: str) -> None:
    assert with_option(line, "--array=0%2") == longer
    assert options_of(longer)["array"] == "0%2"
