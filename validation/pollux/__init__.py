"""Replays the published workloads of Pollux under its two baselines, job by job."""
