"""Property tests draw the same examples in every run: a red build can be repeated."""

from hypothesis import settings

settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")
