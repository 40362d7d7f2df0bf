"""Sets of images when several add to one at once, on SQLite and on PostgreSQL."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.service.api.conftest import png
from uncanny.service.service import Service
from uncanny.service.store.uploads import UploadLimits, UploadStore


def test_two_who_fill_a_set_at_once_do_not_exceed_its_limit(service: Service) -> None:
    store = UploadStore(service.database, service.data, UploadLimits(set_images=10))
    set_id = store.new_set(name=None, by="ann").id

    def add(number: int) -> str | None:
        with store.receive(10_000) as incoming:
            incoming.write(png(size=(1 + number % 20, 1)))
            stored = store.keep_image(set_id, incoming, f"{number}.png")
            return None if stored is None else stored[0].name

    with ThreadPoolExecutor(8) as pool:
        # Each image twice: as when an upload that seems to hang is sent once more.
        kept = list(pool.map(add, range(40)))
    assert len({name for name in kept if name is not None}) == 10
    assert store.image_set(set_id).count == len(store.images(set_id)[0]) == 10
    assert len(list(store.images_folder(set_id).iterdir())) == 10
