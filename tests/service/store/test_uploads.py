"""Sets of images when several add to one at once, on SQLite and on PostgreSQL."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.service.api.conftest import png
from tests.service.jobs.working import ended, records, working
from uncanny.images.columns import METADATA_LINES
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
    assert store.image_set(set_id).count == len(store.images(set_id).images) == 10
    assert len(list(store.images_folder(set_id).iterdir())) == 10


@pytest.mark.slow
def test_a_name_that_no_file_may_have_stands_in_the_records(service: Service) -> None:
    store = service.uploads
    set_id = store.new_set(name=None, by="ann").id
    names = {}
    for number, name in enumerate(("50%_086.png", "cats/a?.png", "cats/a*.png", "plain.png")):
        for _ in range(2):  # the second time the set has it already
            with store.receive(10_000) as incoming:
                incoming.write(png(size=(1 + number, 1)))
                kept = store.keep_image(set_id, incoming, name)
                assert kept is not None
                names[kept[0].name] = name
    assert names.keys() == {"50__086.png", "cats/a_.png", "cats/a_-2.png", "plain.png"}
    os.utime(store.images_folder(set_id) / METADATA_LINES, (0, 0))
    store.sweep()
    job = service.submit("detect", {"images": [f"upload:{set_id}"], "model": "noop"}, by="ann")
    with working(service):
        assert ended(service, job).state == "finished"
    told = {
        each["image"].partition(f"{set_id}/")[2]: each.get("columns", {}).get("original_name")
        for each in records(service, job)
    }
    assert told == {name: None if original == name else original for name, original in names.items()}
