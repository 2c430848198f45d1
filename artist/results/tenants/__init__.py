"""What tenants used and how long priorities waited."""
