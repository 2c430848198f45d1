"""Quotas: which jobs may run at their own priority, and in which order jobs come forward."""
