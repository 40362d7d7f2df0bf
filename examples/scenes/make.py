"""Make the bundled sets: `python make.py` for all, `python make.py r01 d03 l02` for some pairs.

Writes pictures, masks and truth files under src/uncanny/demo/data, those of the style `large` to its folder
`large`, and, when all are made, the contact sheets docs/images/scenes.webp and large-scenes.webp. A scene
whose text names a clean picture only has no partner and no anomaly, and one without `mcq` has no questions.
"""

from __future__ import annotations

import hashlib
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

from contact_sheet import write_contact_sheet
from PIL import Image
from regions import Mask, Regions, Scenery, box_of, difference, grow
from render import POV, render
from render import SIZE as render_size
from sketch import SIZE as drawing_size
from sketch import draw

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DATA = ROOT / "src" / "uncanny" / "demo" / "data"
SETS = {DATA: "scenes.webp", DATA / "large": "large-scenes.webp"}
CLEAN_SPLIT = {"art_dg": "ref_real", "art_pg": "ref_pg"}
SAVE: dict[str, dict[str, Any]] = {
    "webp": {"quality": 90, "method": 6},
    "jpg": {"quality": 90, "optimize": True, "subsampling": 0},
    "png": {"optimize": True},
}


def picture(text: dict[str, Any], anomalous: bool) -> tuple[Image.Image, Regions]:
    if (POV / f"{text['pair']}.pov").is_file():
        return render(text["pair"], anomalous, text["parts"], tuple(text.get("size", render_size)))
    module = import_module(f"drawn.{text['pair']}")
    return draw(module.scene, anomalous, getattr(module, "SIZE", drawing_size))


def folder_of(text: dict[str, Any]) -> str:
    """Where a set lies in the data: the large one in a folder of its own."""
    return "large/" if text["style"] == "large" else ""


def encode(image: Image.Image, text: dict[str, Any]) -> bytes:
    buffer, suffix = BytesIO(), text["format"]
    options = SAVE[suffix] | ({"quality": text["quality"]} if "quality" in text else {})
    image.save(buffer, {"jpg": "JPEG"}.get(suffix, suffix.upper()), **options)
    return buffer.getvalue()


def save_mask(mask: Mask, path: Path) -> None:
    Image.fromarray(mask).convert("1").save(path, optimize=True)


def anomalies(
    text: dict[str, Any], scene_id: str, scenery: Scenery, differs: Mask | None
) -> list[dict[str, Any]]:
    """In a large picture the mask is also where it `differs` from its partner."""
    made = []
    for number, entry in enumerate(text["anomalies"], start=1):
        parts = scenery.union(entry["parts"])
        mask = grow(parts if differs is None else parts | differs, 2)
        name = f"{folder_of(text)}masks/{scene_id}-{number}.png"
        save_mask(mask, DATA / name)
        fields = {key: value for key, value in entry.items() if key != "parts"}
        made.append({**fields, "box": box_of(mask), "mask": name})
    return made


def objects(text: dict[str, Any], role: str, scenery: Scenery) -> list[dict[str, Any]]:
    return [
        {
            "name": entry["name"],
            "description": entry.get(role, entry.get("description")),
            "box": box_of(scenery.union(entry["parts"], lenient=True)),
        }
        for entry in text["objects"]
    ]


def questions(text: dict[str, Any], role: str, scenery: Scenery) -> dict[str, Any]:
    """The same options for both pictures: boxes come from the picture with the anomaly, if there is one."""
    mcq = text["mcq"]
    letter = mcq["answer"] if role == "anomalous" else "E"
    boxes = {key: box_of(scenery.union(parts), margin=4) for key, parts in mcq["q3"].items()}
    return {
        "q1": {"answer": "yes" if role == "anomalous" else "no"},
        "q2": {"options": mcq["q2"], "answer": letter},
        "q3": {"boxes": boxes, "answer": letter},
        "q4": {"options": mcq["q4"], "answer": letter},
    }


def make_pair(text: dict[str, Any]) -> None:
    roles = sorted(text["slug"])
    with ThreadPoolExecutor() as pool:  # The renderer is a process of its own, so threads do.
        made = pool.map(lambda role: picture(text, role == "anomalous"), roles)
        pictures = dict(zip(roles, made, strict=True))
    clean = pictures["clean"][1]
    asked = Scenery(pictures["anomalous" if "anomalous" in pictures else "clean"][1], clean)
    differs = None
    if text["style"] == "large":
        differs = difference(*(image for image, _ in pictures.values()))
    for role, (image, regions) in pictures.items():
        scene_id = f"{text['pair']}-{text['slug'][role]}"
        name = f"{folder_of(text)}images/{scene_id}.{text['format']}"
        data = encode(image, text)
        (DATA / name).write_bytes(data)
        wrong = role == "anomalous"
        truth = {
            "id": scene_id,
            "image": name,
            "sha256": hashlib.sha256(data).hexdigest(),
            "width": image.width,
            "height": image.height,
            "style": text["style"],
            "pair_id": text["pair"] if len(roles) == 2 else None,
            "role": role,
            **(
                {"split": text["split"] if wrong else CLEAN_SPLIT.get(text["split"], text["split"])}
                if "split" in text
                else {}
            ),
            "artifact_type": text["artifact_type"] if wrong else None,
            "objects": objects(text, role, Scenery(regions, clean)),
            "anomalies": anomalies(text, scene_id, asked, differs) if wrong else [],
        }
        if "mcq" in text:
            truth["mcq"] = questions(text, role, asked)
        path = DATA / folder_of(text) / "truth" / f"{scene_id}.json"
        path.write_text(json.dumps(truth, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        print(f"{name}: {len(data) // 1024} KiB")


def write_metadata(data: Path) -> None:
    """Beside the pictures: which of them make a pair, and how they were made."""
    truths = (json.loads(path.read_text(encoding="utf-8")) for path in (data / "truth").glob("*.json"))
    rows = (
        {"file_name": Path(truth["image"]).name, "pair": truth["pair_id"], "style": truth["style"]}
        for truth in truths
    )
    lines = (
        json.dumps({name: value for name, value in row.items() if value is not None}) + "\n"
        for row in sorted(rows, key=lambda row: str(row["file_name"]))
    )
    (data / "images" / "metadata.jsonl").write_text("".join(lines), encoding="utf-8")


def main(wanted: list[str]) -> None:
    for data in SETS:
        for folder in ("images", "masks", "truth"):
            (data / folder).mkdir(parents=True, exist_ok=True)
    for path in sorted((HERE / "texts").glob("*.json")):
        if not wanted or path.stem in wanted:
            make_pair(json.loads(path.read_text(encoding="utf-8")))
    for data, sheet in SETS.items():
        write_metadata(data)
        write_contact_sheet(data, ROOT / "docs" / "images" / sheet)


if __name__ == "__main__":
    main(sys.argv[1:])
