"""The log of a service and its snapshots, in SQLite or PostgreSQL."""
