"""What a command gets that runs on a service: its options as parameters of a job, its files sent there first.

`server_command` says of a protocol which of its arguments are images, records or pairs, and what of its
options is for this machine alone. An input may also be there already: `job:ID`, `upload:ID`, or `server:PATH`
for a path in one of the service's own folders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from uncanny.demo.sets import BUNDLED
from uncanny.errors import NotFoundError, UsageError
from uncanny.parameters import shown_as
from uncanny.wording import option

if TYPE_CHECKING:
    from uncanny.protocol import Protocol
    from uncanny.service.client.client import Client
    from uncanny.service.client.uploads import Images, UploadedImage, UploadedImages

RECORDS: Final = "annotations.jsonl"
# For this machine: where results go, how they are shown, and images' names in them.
_HERE: Final = frozenset(
    {
        *("run", "out", "as_json", "json_file", "quiet", "force", "report", "no_report", "pictures"),
        *("dry_run", "server", "detach"),
    }
)
Shown = Callable[[int, int], object]


@dataclass
class Sent:
    """What was sent for a job, and where that lies here; `new` counts images that were not there before."""

    client: Client
    on_sent: Shown
    into: Sequence[str] = ()
    on_set: Callable[[str], object] = lambda _id: None
    images: list[UploadedImage] = field(default_factory=list)
    new: int = 0
    refused: list[str] = field(default_factory=list)
    folders: dict[str, Path] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)

    def upload(self, images: Images) -> UploadedImages:
        """Send images; those of an earlier try are there already."""
        from uncanny.service.client.uploads import collect, upload_images

        uploaded = upload_images(
            self.client.connection,
            collect(images),
            into=self.into,
            on_sent=self.on_sent,
            on_set=self.on_set,
        )
        self.into = ()
        self.images += uploaded.images
        self.new += uploaded.sent - len(uploaded.refused)
        self.refused += [f"{each.name}: {each.message}" for each in uploaded.refused]
        return uploaded

    def file(self, path: Path) -> str:
        reference = self.client.upload_file(path)
        self.files[reference.removeprefix("upload:")] = path
        return reference

    def rows(self, name: str, rows: Iterable[Mapping[str, Any]], path: Path | None = None) -> str:
        from uncanny.files import dump_json

        data = b"".join(dump_json(row) + b"\n" for row in rows)
        reference = self.client.send_file(name, data)
        if path is not None:
            self.files[reference.removeprefix("upload:")] = path
        return reference


Send = Callable[[Sent, Any, dict[str, Any]], None]
"""Sends an input, and enters it into the parameters of the job; takes out of them what belongs to it."""


@dataclass(frozen=True)
class ServerCommand:
    """A command as a job. `send` are its inputs; `here` are options besides the usual that stay here.

    `page` is that of figures in the job's folder, `outputs` are other files there, by the option that
    says where they go; `csv_head` is where the columns of a CSV are, MODULE:NAME. `folder` is the option
    that names the folder of the results, None where they are single files, and `brings` what of the job's
    folder comes there.
    """

    kind: str
    send: Mapping[str, Send]
    here: frozenset[str] = frozenset()
    page: str | None = None
    outputs: Mapping[str, str] = field(default_factory=dict)
    csv_head: str = ""
    folder: str | None = "out"
    brings: str = "run/"

    def stays(self, name: str) -> bool:
        return name in _HERE or name in self.here or name in self.outputs


def there_already(argument: object) -> str | None:
    """What an argument that names something on the service is called there; None for what lies here."""
    from uncanny.service.client.client import as_reference

    text = str(argument)
    if text in (*BUNDLED, "scenes:rendered", "scenes:drawn") and Path(text).exists():
        return None
    return as_reference(text)


# Images.


def _images(sent: Sent, paths: Sequence[Path], params: dict[str, Any]) -> None:
    there = [there_already(path) for path in paths]
    references = [each for each in there if each is not None]
    local = [path for path, each in zip(paths, there, strict=True) if each is None]
    if local:
        references += sent.upload(local).references
    params["images"] = references


# Files of items and pairs, which name images.


def _items(sent: Sent, items: str, params: dict[str, Any]) -> None:
    from uncanny.eval.mcq.data.load import load

    root: Path | None = params.pop("root", None)
    reference = there_already(items)
    if reference is not None:
        params["items"] = reference
        return
    loaded = load(items, root=root)
    rows = [item.model_dump(mode="json", exclude_unset=True) for item in loaded]
    base = root or loaded.file.parent
    params["items"], params["root"] = _with_images(sent, rows, ("image", "overlay"), base, loaded.file)


def _pairs(sent: Sent, pairs: str | None, params: dict[str, Any], *, masks: bool) -> None:
    names = ("original", "edited", "root", *(["masks"] if masks else []))
    given = {name: params.pop(name, None) for name in names}
    reference = None if pairs is None else there_already(pairs)
    if reference is not None:
        params["pairs"] = reference
        return
    rows = list(_edit_rows(pairs, given) if masks else _realism_rows(pairs, given))
    file = Path(pairs) if pairs is not None and Path(pairs).is_file() else None
    columns = ("original", "edited", "mask")
    params["pairs"], params["root"] = _with_images(sent, rows, columns, Path(), file)


def _realism_rows(pairs: str | None, given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    from uncanny.eval.realism.data import load

    for pair in load(pairs, **given):
        yield {"id": pair.id, "original": str(pair.original), "edited": str(pair.edited), "group": pair.group}


def _edit_rows(pairs: str | None, given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    from uncanny.eval.edits.data import load

    for edit in load(pairs, **given):
        drawn = [str(mask) if isinstance(mask, Path) else mask for mask in edit.masks]
        yield edit.pair.model_dump(mode="json", exclude_unset=True) | {
            "original": str(edit.original),
            "edited": str(edit.edited),
            "mask": drawn[0] if len(drawn) == 1 else (drawn or None),
        }


def _with_images(
    sent: Sent, rows: list[dict[str, Any]], columns: Sequence[str], base: Path, file: Path | None
) -> tuple[str, str]:
    """Send the images that rows name from `base`, and the rows with their names there; both references."""

    def named(value: Any) -> list[str]:
        return [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str)]

    paths = {text: base / text for row in rows for column in columns for text in named(row.get(column))}
    # What is missing here is missing there: its own record says so.
    present = {text: path for text, path in paths.items() if path.is_file()}
    if not present:
        raise UsageError(
            f"None of the {len(paths):,} images exists below {base.absolute()}",
            remedy=f"Pass the folder that their paths start from with {option('root')}.",
        )
    digests: dict[str, str] = {}
    contents: dict[str, Path] = {}
    for text, path in present.items():
        digests[text] = _digest(path)
        contents.setdefault(digests[text], path)
    uploaded = sent.upload(list(contents.values()))
    there = {image.sha256: image.name for image in uploaded.images}
    names = {text: there.get(digest, text) for text, digest in digests.items()}

    def renamed(value: Any) -> Any:
        if isinstance(value, list):
            return [renamed(each) for each in value]
        return names.get(value, value) if isinstance(value, str) else value

    written = [row | {column: renamed(row[column]) for column in columns if column in row} for row in rows]
    sent.folders[uploaded.sets[0]] = base
    name = "rows.jsonl" if file is None else f"{file.stem}.jsonl"
    return sent.rows(name, written, file), uploaded.references[0]


def _digest(path: Path) -> str:
    import hashlib

    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error


def _chats(name: str, sent: Sent, chats: str, params: dict[str, Any]) -> None:
    from uncanny.learn.common.chats import chats_file, read_chats

    root: Path | None = params.pop("root", None)
    reference = there_already(chats)
    if reference is not None:
        params[name] = reference
        return
    file = chats_file(Path(chats))
    rows = [each.model_dump(mode="json", exclude_unset=True) for each in read_chats(file)]
    params[name], params["root"] = _with_images(sent, rows, ("images",), root or file.parent, file)


# Runs and records.


def _records(sent: Sent, place: str | Path) -> str:
    """A run or a file of records: the job it came from, where that is one of this service, else the file."""
    from uncanny.cli.server.folder import job_of

    reference = there_already(place)
    if reference is not None:
        return reference
    path = Path(place)
    job_id = job_of(path, sent.client.url)
    if job_id is not None:
        try:
            return sent.client.job(job_id).reference
        except NotFoundError:
            pass
    file = path / RECORDS if path.is_dir() else path
    if not file.is_file():
        raise UsageError(
            f"{path} is neither a run nor a file", remedy="Pass a run folder, a file, or job:ID."
        )
    return sent.file(file)


def _named(name: str) -> Send:
    """Arguments of the form [NAME=]PATH, as a mapping in the parameter `name`."""

    def send(sent: Sent, arguments: Sequence[str], params: dict[str, Any]) -> None:
        from uncanny.cli.common.places import name_and_path
        from uncanny.eval.common.anomalies.load import name_paths

        named: dict[str, str] = {}
        local: list[tuple[str | None, Path]] = []
        for argument in arguments:
            given, equals, place = argument.partition("=")
            if there_already(place if equals else argument) is not None:
                named[given if equals else argument.rpartition(":")[2]] = place if equals else argument
            else:
                local.append(name_and_path(argument))
        for each, path in name_paths(local, what=name).items():
            if each in named:
                raise UsageError(f"Two {name} are called {each!r}", remedy="Write NAME=PATH.")
            named[each] = str(path)
        params[name] = {_as_name(each): _records(sent, place) for each, place in named.items()}

    return send


def _generators(sent: Sent, arguments: Sequence[str], params: dict[str, Any]) -> None:
    from uncanny.cli.audit import read_generators
    from uncanny.eval.common.inputs.sources import read_sources

    references: dict[str, str] = {}
    for name, place in read_generators(arguments)[0].items():
        there = there_already(place)
        if there is None:
            source = read_sources({name: place})[0]
            if source.kind == "images" and source.path is not None:
                uploaded = sent.upload([source.path])
                if len(uploaded.references) > 1:
                    raise UsageError(
                        f"{name}: some images appear twice, under different names",
                        remedy="Keep one of each in the folder, or annotate the folder first.",
                    )
                there = uploaded.references[0]
            else:
                there = _records(sent, str(place))
        references[name] = there
    params["generators"] = references


def _annotated(parameter: str) -> Send:
    def send(sent: Sent, arguments: Sequence[str], params: dict[str, Any]) -> None:
        from uncanny.cli.audit import named_sources

        named = named_sources(arguments)
        params[parameter] = {name: _records(sent, str(place)) for name, place in named.items()}

    return send


def _file(name: str) -> Send:
    def send(sent: Sent, path: str | Path, params: dict[str, Any]) -> None:
        params[name] = there_already(path) or _records(sent, path)

    return send


def _run_to_export(sent: Sent, run: Path, params: dict[str, Any]) -> None:
    from uncanny.cli.server.folder import job_of

    if there_already(run) is None and (
        (run / "reviews.jsonl").is_file() or job_of(run, sent.client.url) is None
    ):
        raise UsageError(
            f"{run} is on this machine, and so are its reviews",
            remedy="Export it here, without --server, or pass a run of the service: job:ID.",
        )
    params["run"] = _records(sent, run)


def _as_name(name: str) -> str:
    """A name as the service takes one: short, and without what could be taken for a path."""
    safe = "".join(char if char.isalnum() or char in "_ .()+-" else "_" for char in name)[:60]
    return safe if safe[:1].isalnum() or safe[:1] == "_" else f"_{safe[:59]}"


# Tables of scores, by the option that says where they go, and where a service leaves them.
_TABLES: Final = {
    "csv_file": "out/scores.csv",
    "markdown_file": "out/scores.md",
    "latex_file": "out/scores.tex",
}


def server_command(protocol: Protocol) -> ServerCommand:
    given = protocol.input
    inputs: Mapping[str, Send] = {
        "images": _images,
        "items": _items,
        "pairs": partial(_pairs, masks="masks" in protocol.parameters.model_fields),
        "generators": _generators,
        "named": _named(given.name),
        "run": _run_to_export,
        "chats": partial(_chats, given.name),
        "truth": _file(given.name),
    }
    send = {given.name: inputs[given.kind]}
    for name, known in protocol.parameters.model_fields.items():
        place = shown_as(known).place
        if place == "source":
            send[name] = _file(name)
        elif place == "file" and "Mapping" in str(known.annotation):
            send[name] = _annotated(name)
    scores = protocol.makes == "scores"
    outputs = dict(_TABLES) if scores or protocol.tables else {}
    if protocol.records_at:
        outputs[protocol.records_at] = f"out/{protocol.records}"
    return ServerCommand(
        protocol.name,
        send,
        frozenset({"root"}) if given.kind == "images" else frozenset(),
        page=f"out/{protocol.command[0]}.html" if scores else None,
        outputs=outputs,
        csv_head=protocol.csv_head,
        folder="out" if protocol.asks or not scores else None,
        brings="out/" if protocol.makes == "files" else "run/",
    )
