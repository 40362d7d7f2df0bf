"""What alembic runs: the steps that are missing, on the connection that it is handed."""

from __future__ import annotations

from alembic import context

from uncanny.service.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True
)
with context.begin_transaction():
    context.run_migrations()
