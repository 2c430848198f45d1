"""Pods that share GPUs: machines with CPU and memory, placers, fragmentation, filling a cluster."""
