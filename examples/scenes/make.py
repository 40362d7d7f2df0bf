"""Make the bundled scenes: `python make.py` for all, `python make.py r01 d03` for some pairs.

Writes pictures, masks and truth files under src/uncanny/demo/data and, when all are made, the contact
sheet docs/images/scenes.webp. A scene whose text names a clean picture only has no partner and no anomaly.
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
from regions import Mask, Regions, Scenery, box_of, grow
from render import SIZE as render_size
from render import render
from sketch import SIZE as drawing_size
from sketch import draw

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DATA = ROOT / "src" / "uncanny" / "demo" / "data"
CLEAN_SPLIT = {"art_dg": "ref_real", "art_pg": "ref_pg"}
SAVE: dict[str, dict[str, Any]] = {
    "webp": {"quality": 90, "method": 6},
    "jpg": {"quality": 90, "optimize": True, "subsampling": 0},
    "png": {"optimize": True},
}


def picture(text: dict[str, Any], anomalous: bool) -> tuple[Image.Image, Regions]:
    if text["style"] == "rendered":
        return render(text["pair"], anomalous, text["parts"], tuple(text.get("size", render_size)))
    module = import_module(f"drawn.{text['pair']}")
    return draw(module.scene, anomalous, getattr(module, "SIZE", drawing_size))


def encode(image: Image.Image, suffix: str) -> bytes:
    buffer = BytesIO()
    image.save(buffer, {"jpg": "JPEG"}.get(suffix, suffix.upper()), **SAVE[suffix])
    return buffer.getvalue()


def save_mask(mask: Mask, path: Path) -> None:
    Image.fromarray(mask).convert("1").save(path, optimize=True)


def anomalies(text: dict[str, Any], scene_id: str, scenery: Scenery) -> list[dict[str, Any]]:
    made = []
    for number, entry in enumerate(text["anomalies"], start=1):
        mask = grow(scenery.union(entry["parts"]), 2)
        name = f"masks/{scene_id}-{number}.png"
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
    for role, (image, regions) in pictures.items():
        scene_id = f"{text['pair']}-{text['slug'][role]}"
        name = f"images/{scene_id}.{text['format']}"
        data = encode(image, text["format"])
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
            "split": text["split"] if wrong else CLEAN_SPLIT.get(text["split"], text["split"]),
            "artifact_type": text["artifact_type"] if wrong else None,
            "objects": objects(text, role, Scenery(regions, clean)),
            "anomalies": anomalies(text, scene_id, asked) if wrong else [],
            "mcq": questions(text, role, asked),
        }
        path = DATA / "truth" / f"{scene_id}.json"
        path.write_text(json.dumps(truth, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
        print(f"{name}: {len(data) // 1024} KiB")


def write_metadata() -> None:
    """Beside the pictures: which of them make a pair, and how they were made."""
    truths = (json.loads(path.read_text(encoding="utf-8")) for path in (DATA / "truth").glob("*.json"))
    rows = (
        {"file_name": Path(truth["image"]).name, "pair": truth["pair_id"], "style": truth["style"]}
        for truth in truths
    )
    lines = (
        json.dumps({name: value for name, value in row.items() if value is not None}) + "\n"
        for row in sorted(rows, key=lambda row: str(row["file_name"]))
    )
    (DATA / "images" / "metadata.jsonl").write_text("".join(lines), encoding="utf-8")


def main(wanted: list[str]) -> None:
    for folder in ("images", "masks", "truth"):
        (DATA / folder).mkdir(parents=True, exist_ok=True)
    for path in sorted((HERE / "texts").glob("*.json")):
        if not wanted or path.stem in wanted:
            make_pair(json.loads(path.read_text(encoding="utf-8")))
    write_metadata()
    write_contact_sheet(DATA, ROOT / "docs" / "images" / "scenes.webp")


if __name__ == "__main__":
    main(sys.argv[1:])
