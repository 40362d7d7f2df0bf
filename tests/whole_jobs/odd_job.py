"""Three hundred files as people have them, and what has to become of each of them."""

from __future__ import annotations

import base64
import json
import unicodedata
from collections import Counter
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from tests.images.odd_files import OK, SAME, Expectation, encoded, make_odd_folder, picture
from tests.runs.e2e import Run
from uncanny.wording import display_path

FILES: Final = 300
COPIES: Final = 20
# A picture of a phone, 16 pixels wide; written with pillow-heif, which not every environment has.
HEIC: Final = base64.b85decode(
    "0000SW^{RQXk}?*00000ZE0pPXk}?*ZE0a<0004eZDn*}000000000XXk=`10000000000aA{+700000000000000000000B57=IV*mgE"
    "07O6l0RRC200001pa1~?00000001Ze001LtX>Mi!000000RR916=`l}WdZ;I000310BCk&F#rGn01j|zbZr0t000010002|X>f9I0002o"
    "X>en20001WXm(>m0RwOV0058x000009`FGC{rLC*01pFT0096PKmiN^|NjGU00093kN^M!000939=ZZRVE_RDDMA4O18@KU0|1Z!00RI3"
    "0{|YNAb|yz>aLpR;31&EfB*mtfB*mk0EA)y0RRR>0l{;@i2wiq6Ju{|a&BX6cmM$a4FCp!0000KX>)L8000000000$0000$0000eV{Bn?"
    "0000G000010000G00001|NsBc00002|NsBc000020000GaA|mH000000|*ER0000OX>e^}0000000001009Mo0s{qv0000mZDe6|0000a"
    "C;_h-AvqH7U8TSOPb$TKfmYusl7Oa{1lNd}3j=|Gjgg%="
)
ODD_NAMES: Final = (
    "two  spaces and one at the end .png",
    "100%_of%20it%s.png",
    unicodedata.normalize("NFC", "Café Łódź.png"),
    unicodedata.normalize("NFD", "Café Łódź.png"),
    "first line\nsecond line.png",
    "-o.png",
    "--dry-run.png",
    "l" * 250 + ".png",
)


@dataclass(frozen=True, slots=True)
class OddFolder:
    """A folder, and by the names that records have what becomes of its images; `others` are no images."""

    path: Path
    expected: dict[str, Expectation]
    others: int


def make_job(folder: Path) -> OddFolder:
    """Write `FILES` files: all odd ones there are, copies, odd names, and ordinary pictures for the rest."""
    wanted: dict[str, Expectation] = dict(make_odd_folder(folder))
    readable = find_spec("pillow_heif") is not None
    (folder / "from a phone.heic").write_bytes(HEIC)
    wanted["from a phone.heic"] = OK if readable else Expectation("unreadable", "unsupported")
    for number, name in enumerate(ODD_NAMES):
        image = picture(40, 30)
        image.putpixel((number, 0), (1, 2, 3))
        (folder / name).write_bytes(encoded(image, "PNG"))
        wanted[name] = SAME
    for number in range(FILES - len(wanted)):
        name, format = (
            (f"album/{number:03d}.jpg", "JPEG") if number % 3 else (f"album/{number:03d}.png", "PNG")
        )
        image = picture(64, 48)
        shade = number if number >= COPIES else 500
        for each in range(8):
            image.paste((shade % 256, 40 * (shade // 256), each * 30), (each * 8, 0, each * 8 + 8, 48))
        (folder / "album").mkdir(exist_ok=True)
        (folder / name).write_bytes(encoded(image, format))
        wanted[name] = SAME
    images = {name: want for name, want in wanted.items() if want.outcome != "not_discovered"}
    assert len(wanted) == FILES
    expected = {display_path(Path(name)): want for name, want in images.items()}
    assert len(expected) == len(images)
    return OddFolder(folder, expected, len(wanted) - len(images))


def check_records(folder: OddFolder, run: Run) -> None:
    """Every file is accounted for, once, as it should be."""
    records = run.records()
    assert Counter(record.image for record in records) == Counter(list(folder.expected))
    wrong = [
        (record.image, record.status, [error.kind for error in record.errors])
        for record in records
        if (record.status, [error.kind for error in record.errors])
        != (
            folder.expected[record.image].outcome,
            [kind] if (kind := folder.expected[record.image].kind) else [],
        )
    ]
    assert wrong == []
    originals = {record.image: record.sha256 for record in records}
    copies = [record for record in records if "duplicate_of" in (record.model_extra or {})]
    assert len(copies) >= COPIES - 2  # there are PNG and JPEG copies, and one of each is asked about
    assert all(record.sha256 == originals[(record.model_extra or {})["duplicate_of"]] for record in copies)


def check_calls(run: Run, requests: int, in_flight: int) -> dict[str, Any]:
    """No call was paid twice but those that a kill cut off; returns the totals, which count every one."""
    calls = {call["request_id"]: call for call in run.calls()}
    # What is asked about the same bytes in the same words is the same question, whoever's file it is.
    digests = {record.image: record.sha256 for record in run.records()}
    asked = Counter(
        (digests[call["image"]], call["prompt"], call["step"], call["sample"], call["asked"], call["attempt"])
        for call in calls.values()
    )
    assert max(asked.values()) == 1, asked.most_common(3)
    assert len(calls) <= requests <= len(calls) + in_flight
    totals: dict[str, Any] = run.manifest()["totals"]
    assert len(calls) <= totals["calls"] <= requests
    for name in ("input_tokens", "output_tokens", "cost_usd"):
        whole = sum(call[name] for call in calls.values())
        # What a killed process counted, and did not live to keep the answer of, was paid for, too.
        lost = totals["calls"] - len(calls)
        assert (
            whole * 0.999999
            <= totals[name]
            <= whole * 1.000001 + lost * max(call[name] for call in calls.values())
        )
    return totals


def exported_to_coco(folder: Path) -> int:
    """How many anomalies a data set in the form of COCO has, with a box and, beside it, without one."""
    found = json.loads((folder / "coco" / "annotations.json").read_text(encoding="utf-8"))["annotations"]
    rest = folder / "coco" / "without_boxes.jsonl"
    return len(found) + (len(rest.read_bytes().splitlines()) if rest.exists() else 0)
