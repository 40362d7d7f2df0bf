"""The first schema, which `Database.upgrade` makes of the tables, as it does every newest one."""

revision = "1"
down_revision = None


def upgrade() -> None:
    """A new database begins with the newest schema: nothing leads to the first one."""
