"""The tables of the service's database. Moments are seconds since the epoch, JSON is text of orjson.

A change here needs a migration in `migrations/versions`; a test brings version 1 up to date and compares.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    Identity,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from uncanny.service import ROLES, STATES

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
    }
)

# SQLite counts up only in a column of its own type INTEGER.
Count: Final = BigInteger().with_variant(Integer, "sqlite")
ID: Final = String(32)
NAME: Final = String(200)
HASH: Final = String(64)

jobs = Table(
    "jobs",
    metadata,
    # The order in which jobs were submitted; never used twice.
    Column("seq", Count, Identity(always=True), primary_key=True),
    Column("id", ID, nullable=False, unique=True),
    Column("kind", String(32), nullable=False),
    Column("name", NAME),
    Column("params", Text, nullable=False),
    Column("state", String(16), nullable=False, default="queued"),
    Column("created_at", Double, nullable=False),
    Column("created_by", NAME, nullable=False),
    Column("started_at", Double),
    Column("ended_at", Double),
    Column("exit_code", Integer),
    Column("error", Text),
    Column("progress", Text),
    # From when on a queued job may be taken.
    Column("due_at", Double, nullable=False),
    # Counts the times it was taken: what an earlier worker still wants to write carries an older number.
    Column("attempt", Integer, nullable=False, default=0),
    Column("worker", String(100)),
    Column("lease_until", Double),
    Column("cancel_requested", Boolean, nullable=False, default=False),
    # How far it was when it was last taken, and what speaks against it since: see `MOST_STRIKES`.
    Column("mark", BigInteger, nullable=False, default=0),
    Column("mark_at_claim", BigInteger, nullable=False, default=0),
    Column("strikes", Integer, nullable=False, default=0),
    CheckConstraint(f"state IN {STATES}", name="state"),
    Index(None, "state", "due_at", "seq"),
    sqlite_autoincrement=True,
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", ID, primary_key=True),
    Column("name", NAME, nullable=False),
    Column("role", String(16), nullable=False),
    # sha256 of the token, which is random enough to need no slower hash.
    Column("hash", HASH, nullable=False, unique=True),
    Column("created_at", Double, nullable=False),
    Column("revoked_at", Double),
    Column("used_at", Double),
    CheckConstraint(f"role IN {ROLES}", name="role"),
)

sessions = Table(
    "sessions",
    metadata,
    Column("hash", HASH, primary_key=True),
    Column("token", ID, ForeignKey("tokens.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
)

image_sets = Table(
    "image_sets",
    metadata,
    Column("id", ID, primary_key=True),
    Column("name", NAME),
    Column("created_at", Double, nullable=False),
    Column("created_by", NAME, nullable=False),
    # Of its rows in `images`, kept up in the transactions that add them.
    Column("image_count", BigInteger, nullable=False, server_default="0"),
    Column("image_bytes", BigInteger, nullable=False, server_default="0"),
)

images = Table(
    "images",
    metadata,
    Column("image_set", ID, ForeignKey("image_sets.id", ondelete="CASCADE"), primary_key=True),
    # The name under which it lies in the set's folder.
    Column("name", NAME, primary_key=True),
    Column("sha256", HASH, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("width", Integer, nullable=False),
    Column("height", Integer, nullable=False),
    UniqueConstraint("image_set", "sha256"),
)

files = Table(
    "files",
    metadata,
    Column("id", ID, primary_key=True),
    Column("name", NAME, nullable=False),
    Column("sha256", HASH, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("created_by", NAME, nullable=False),
)

audit = Table(
    "audit",
    metadata,
    Column("seq", Count, Identity(always=True), primary_key=True),
    Column("at", Double, nullable=False),
    Column("who", NAME, nullable=False),
    Column("role", String(16), nullable=False),
    Column("action", String(64), nullable=False),
    Column("subject", String(200)),
    # From where it was asked for; None at the command line.
    Column("address", String(64)),
    Column("details", Text),
    sqlite_autoincrement=True,
)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("who", NAME, primary_key=True),
    Column("key", String(200), primary_key=True),
    # Of the request, so that a key used for another one is refused.
    Column("request", HASH, nullable=False),
    Column("answer", Text),
    Column("created_at", Double, nullable=False),
)

# Which data folder the database belongs to, and the like.
facts = Table(
    "facts",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", Text, nullable=False),
)
