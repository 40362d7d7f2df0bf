"""How the schema came about, step by step; alembic goes through them."""
