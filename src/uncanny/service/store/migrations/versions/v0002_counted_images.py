"""Sets of images know how many they have: a limit can be held without counting rows each time."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("image_count", "image_bytes"):
        op.add_column("image_sets", sa.Column(name, sa.BigInteger(), nullable=False, server_default="0"))
    mine = "FROM images WHERE images.image_set = image_sets.id"
    op.execute(
        f"UPDATE image_sets SET image_count = (SELECT count(*) {mine}), "
        f"image_bytes = (SELECT coalesce(sum(images.size), 0) {mine})"
    )
