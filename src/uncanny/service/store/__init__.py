"""What the service keeps: one database for jobs, tokens, uploads and the audit log, SQLite or PostgreSQL."""
