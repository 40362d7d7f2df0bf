"""An item file under the hands of authors: read, checked and written item by item.

The file is that of `uncanny mcq`, and stays it: keys that a page does not know are kept, lines that nobody
touches stay byte for byte, with their ends, also invalid and blank ones, and it is replaced in one step. Two
who write one item never overwrite each other: an item is known by what its line holds, and whoever comes
second is told.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import Any, Final, Literal

from filelock import FileLock, Timeout
from pydantic import ValidationError

from uncanny.errors import ImageError, Problem, ReviewConflictError, RunLockedError, StorageError, UsageError
from uncanny.eval.common.inputs.problems import of_validation
from uncanny.eval.mcq.data.checks import check_item
from uncanny.eval.mcq.data.items import OPTIONS, Item, ItemSet, Option, Split
from uncanny.eval.mcq.data.texts import carried_set
from uncanny.files import dump_json, load_json, read_file
from uncanny.images.discover import discover
from uncanny.records.jsonl import check_plain, write_atomically
from uncanny.records.shared_log import LOCK_WAIT_S, file_state
from uncanny.service.decoding import measure
from uncanny.wording import option

Fields = Mapping[str, Any]
_PARTNERS: Final[Mapping[Split, Split]] = {
    "art_pg": "ref_pg",
    "ref_pg": "art_pg",
    "art_dg": "ref_real",
    "ref_real": "art_dg",
}
_ITEM_KEYS: Final = frozenset({"split", "q1", "q2", "q3", "q4"})
TEXT_QUESTIONS: Final[tuple[Literal["q2", "q4"], ...]] = ("q2", "q4")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the file; `key` changes with it. `data` is None where it is no JSON object.

    `before` is what stands ahead of the line, blank lines and a byte order mark; `end` is its line end, empty
    where the file ends without one.
    """

    key: str
    line: bytes
    data: dict[str, Any] | None
    before: bytes = b""
    end: bytes = b"\n"

    @property
    def is_item(self) -> bool:
        """Whether it was meant for an item, valid or not."""
        return self.data is not None and "id" in self.data and not _ITEM_KEYS.isdisjoint(self.data)

    @property
    def id(self) -> str:
        name = None if self.data is None else self.data.get("id")
        return name if isinstance(name, str) and name else "(no id)"

    @property
    def image(self) -> str | None:
        name = None if self.data is None else self.data.get("image")
        return name if isinstance(name, str) and name else None


@dataclass(frozen=True, slots=True)
class Listed:
    """An item in the list, with how much is wrong with it; images are not looked at for it."""

    key: str
    id: str
    split: str
    errors: int
    warnings: int


class ItemsFile:
    """An item file, perhaps not there yet, and the images that new items may be about.

    All methods may be called from several threads at once.
    """

    def __init__(
        self, path: Path, *, images: Path | None = None, root: Path | None = None, force: bool = False
    ) -> None:
        """Raises UsageError where there is neither a file nor images, or the file cannot be read.

        A file that holds something and no item is refused, too, unless `force`.
        """
        self.path, self.root = path, root
        # A link stays one, and all who come by one have the same lock.
        self._file = path.resolve()
        # Stands in addresses of pictures, which browsers keep: files may change while nothing is served.
        self.tag = f"{time.time_ns():x}"
        self._base = root if root is not None else path.parent
        self._lock = RLock()
        self._state: object = ()
        self._entries: tuple[Entry, ...] = ()
        self._rest = b""  # blank lines after the last entry
        self.images = () if images is None else self._images(images)
        if path.is_dir() or not path.parent.is_dir():
            raise UsageError(f"{path} cannot be an item file", remedy="Pass a file in a folder that exists.")
        if not path.is_file() and not self.images:
            raise UsageError(
                f"{path} does not exist",
                remedy=f"Pass an item file, or {option('images')} to start a new one.",
            )
        entries = self.entries()
        if entries and not force and not any(each.is_item for each in entries):
            raise UsageError(
                f"{path} contains no item, and saving would write to it",
                remedy=f"Pass an item file, or {option('force')} to add items to this one.",
            )

    def entries(self) -> tuple[Entry, ...]:
        """The lines as they are now. Raises UsageError where the file cannot be read."""
        with self._lock:
            state = file_state(self.path)
            if state != self._state:
                try:
                    data = read_file(self.path) if state is not None else b""
                except OSError as error:
                    raise UsageError(f"{self.path} cannot be read: {error.strerror or error}") from error
                self._entries, self._rest = _taken_apart(data)
                self._state = state
            return self._entries

    def find(self, key: str) -> Entry | None:
        return next((each for each in self.entries() if each.key == key), None)

    def listed(self) -> list[Listed]:
        """All items with what is wrong with them, in the order of the file."""
        valid = [(each, _item(each.data)) for each in self.entries()]
        items = ItemSet(tuple(item for _, item in valid if isinstance(item, Item)), self.path, self.root)
        found = []
        for entry, item in valid:
            problems = check_item(item, items, images=False) if isinstance(item, Item) else item
            errors = sum(problem.severity == "error" for problem in problems)
            split = str((entry.data or {}).get("split", ""))
            found.append(Listed(entry.key, entry.id, split, errors, len(problems) - errors))
        return found

    def check(self, key: str | None, fields: Fields) -> tuple[Problem, ...]:
        """What `uncanny mcq check` would say of the item with these fields."""
        before = None if key is None else self.find(key)
        data = self._changed(before, fields)
        return self._problems(data, before)

    def problems(self, entry: Entry) -> tuple[Problem, ...]:
        """The same of an item as it stands."""
        return self._problems(entry.data, entry)

    def save(self, key: str | None, fields: Fields) -> Entry:
        """Write an item in place of the line `key`, or as a new last one. It need not be finished.

        Raises ReviewConflictError where the line is another one by now, UsageError for an image that nobody
        has offered, RunLockedError, StorageError.
        """
        entry = Entry("", b"", None)

        def change(entries: list[Entry]) -> list[Entry]:
            nonlocal entry
            at = _place(entries, key)
            old = None if at is None else entries[at]
            entry = _entry(dump_json(self._changed(old, fields)))
            if at is None or old is None:
                return [*entries, entry]
            entry = replace(entry, before=old.before, end=old.end)
            return [*entries[:at], entry, *entries[at + 1 :]]

        self._write(change)
        return entry

    def remove(self, key: str) -> None:
        """Take an item out. Raises as `save`."""

        def change(entries: list[Entry]) -> list[Entry]:
            at = _place(entries, key)
            assert at is not None  # it has a key
            gone, after = entries[at], entries[at + 1 :]
            if after:
                after[0] = replace(after[0], before=gone.before + after[0].before)
            else:
                self._rest = gone.before + self._rest
            return [*entries[:at], *after]

        self._write(change)

    def partner(self, entry: Entry) -> dict[str, Any]:
        """A first draft of the item's partner: the other split, the same options and boxes, no right answer
        among them where it is a reference."""
        data = dict(entry.data or {})
        split = _PARTNERS.get(data.get("split", ""), "ref_pg")
        reference = split in ("ref_pg", "ref_real")
        drafted: dict[str, Any] = {"id": f"{entry.id}-{split}", "image": "", "split": split}
        drafted["pair_id"] = data.get("pair_id") or entry.id
        if split != "ref_pg":
            drafted["q1"] = {"answer": "no" if reference else "yes"}
        for question in ("q2", "q3", "q4"):
            if isinstance(data.get(question), dict):
                kept = {name: each for name, each in data[question].items() if name != "answer"}
                drafted[question] = kept | ({"answer": "E"} if reference else {})
        return drafted

    def picture(self, image: str | None) -> Path | None:
        """The file of an image that an item has or may have; None for any other."""
        known = image is not None and (
            image in self.images or any(each.image == image for each in self.entries())
        )
        return self._base / image if known and image is not None else None

    def size(self, image: str | None) -> tuple[int, int] | None:
        """Width and height as seen; None where the image cannot be read."""
        path = self.picture(image)
        if path is None:
            return None
        try:
            return measure(path)[:2]
        except (ImageError, OSError):
            return None

    def unused(self) -> list[str]:
        """Offered images that no item is about yet."""
        used = {each.image for each in self.entries()}
        return [image for image in self.images if image not in used]

    # Within

    def _images(self, folder: Path) -> tuple[str, ...]:
        found = discover([folder]).files
        return tuple(Path(os.path.relpath(each, self._base)).as_posix() for each in found)

    def _problems(self, data: dict[str, Any] | None, before: Entry | None) -> tuple[Problem, ...]:
        item = _item(data)
        if not isinstance(item, Item):
            return tuple(item)
        others = [_item(each.data) for each in self.entries() if before is None or each.key != before.key]
        items = (*(each for each in others if isinstance(each, Item)), item)
        return check_item(item, ItemSet(items, self.path, self.root))

    def _changed(self, before: Entry | None, fields: Fields) -> dict[str, Any]:
        """The item's object with these fields in it; whatever else it has stays."""
        data = dict(before.data or {}) if before is not None else {}
        image = fields["image"]
        if image and image != (None if before is None else before.image) and self.picture(image) is None:
            raise UsageError("This image is not one of those offered", remedy="Choose another.")
        data |= {"id": fields["id"], "image": image, "split": fields["split"]}
        for name in ("pair_id", "artifact_type"):
            _set(data, name, fields[name] or None)
        _set(data, "q1", {**_object(data, "q1"), "answer": fields["q1"]} if fields["q1"] else None)
        for question in TEXT_QUESTIONS:
            _set(data, question, _texts(_object(data, question), fields[question]))
        boxes_before = _object(data, "q3").get("boxes")
        _set(data, "q3", _boxes(_object(data, "q3"), fields["q3"]))
        if before is not None and _carries(before.data) and not _carries(data):
            # Uncanny's prompts filled in with the options from before; a run fills in the new ones.
            for name in ("prompts", "prompts_id", "system", "answer_form"):
                data.pop(name, None)
        if data.get("overlay") is not None and _object(data, "q3").get("boxes") != boxes_before:
            del data["overlay"]  # it shows other boxes; `uncanny mcq overlay` draws it anew
        if fields["draft"]:
            data["draft"] = True
        else:
            data.pop("draft", None)
        return data

    @contextmanager
    def _locked(self) -> Iterator[None]:
        check_plain(self._file.with_name(f".{self._file.name}.lock"), writes=True)
        lock = FileLock(self._file.with_name(f".{self._file.name}.lock"))
        try:
            lock.acquire(timeout=LOCK_WAIT_S)
        except Timeout as error:
            raise RunLockedError(f"Another process has been writing {self.path}", remedy="Wait.") from error
        try:
            yield
        finally:
            lock.release()

    def _write(self, change: Callable[[list[Entry]], list[Entry]]) -> None:
        try:
            with self._lock, self._locked():
                before = list(self.entries())
                entries = change(before)
                write_atomically(self._file, _put_together(before, entries, self._rest))
                self.entries()
        except OSError as error:
            raise StorageError(
                f"{self.path} cannot be written: {error.strerror or error}",
                remedy="Make room, or its folder writable.",
            ) from error


def _taken_apart(data: bytes) -> tuple[tuple[Entry, ...], bytes]:
    """The lines with something in them, and the blank ones after the last of them."""
    before = b"\xef\xbb\xbf" if data.startswith(b"\xef\xbb\xbf") else b""
    entries: list[Entry] = []
    for whole in data.removeprefix(before).splitlines(keepends=True):
        line = whole.rstrip(b"\r\n")
        if line.strip():
            entries.append(replace(_entry(line), before=before, end=whole[len(line) :]))
            before = b""
        else:
            before += whole
    return tuple(entries), before


def _put_together(old: Sequence[Entry], new: Sequence[Entry], rest: bytes) -> Iterator[bytes]:
    """The file of the `new` entries: those that were there keep their bytes, and blank lines theirs."""
    ends = Counter(each.end for each in old if each.end)
    usual = ends.most_common(1)[0][0] if ends else b"\n"
    for number, entry in enumerate(new):
        added = number >= len(old)
        if added:
            yield rest
            rest = b""
        end = usual if added or (not entry.end and number < len(new) - 1) else entry.end
        yield entry.before + entry.line + end
    yield rest


def _entry(line: bytes) -> Entry:
    try:
        data = load_json(line)
    except ValueError:
        data = None
    return Entry(sha256(line).hexdigest()[:16], line, data if isinstance(data, dict) else None)


def _place(entries: list[Entry], key: str | None) -> int | None:
    if key is None:
        return None
    at = next((place for place, each in enumerate(entries) if each.key == key), None)
    if at is None:
        raise ReviewConflictError(
            "Someone else has changed this item since you opened it; nothing was written",
            remedy="Open it again, and bring your changes in.",
        )
    return at


def _carries(data: dict[str, Any] | None) -> bool:
    """Whether an item has prompts of uncanny's that are filled in with what it says."""
    item = _item(data)
    return isinstance(item, Item) and carried_set(item) is not None


def _item(data: dict[str, Any] | None) -> Item | list[Problem]:
    if data is None:
        return [Problem(None, None, "the line is not a JSON object; fix it in a text editor")]
    try:
        return Item.model_validate(data)
    except ValidationError as error:
        return of_validation(error, item=str(data.get("id", "")) or None, line=None)


def _object(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    value = data.get(name)
    return dict(value) if isinstance(value, dict) else {}


def _set(data: dict[str, Any], name: str, value: object) -> None:
    """A key that has nothing to say is null where it stood before, else absent."""
    if value is not None or data.get(name) is not None:
        data[name] = value


def _texts(before: dict[str, Any], fields: Fields) -> dict[str, Any] | None:
    options = {letter: fields[letter] for letter in OPTIONS if fields[letter]}
    return _choice(before, "options", options, fields["answer"])


def _boxes(before: dict[str, Any], fields: Fields) -> dict[str, Any] | None:
    boxes: dict[Option, Any] = {letter: list(fields[letter]) for letter in OPTIONS if fields[letter]}
    old = before.get("boxes")
    if isinstance(old, dict):
        # Fractions of pixels that nobody has moved stay.
        for letter, box in boxes.items():
            if isinstance(old.get(letter), list) and [round(x) for x in old[letter]] == box:
                boxes[letter] = old[letter]
    return _choice(before, "boxes", boxes, fields["answer"])


def _choice(
    before: dict[str, Any], name: str, options: Mapping[Any, Any], answer: str
) -> dict[str, Any] | None:
    if not options and not answer and not before:
        return None
    changed: dict[str, Any] = {**before, name: dict(options)}
    if answer:
        changed["answer"] = answer
    else:
        changed.pop("answer", None)
    return changed if options or answer else None
