"""Order statistics; paired differences between runs: intervals, verdicts that hold together."""
