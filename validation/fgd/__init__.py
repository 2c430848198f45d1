"""Replays the published runs of fragmentation gradient descent pod by pod."""
