"""Write the tables in `docs/providers.md` from presets and views: `python docs/make_providers.py`.

A test fails if the page differs from what this script writes.
"""

from __future__ import annotations

import re
from pathlib import Path

from uncanny.models.presets import PRESETS, Preset
from uncanny.models.views import FAMILIES, Family

TARGET = Path(__file__).with_name("providers.md")
BEGIN = "<!-- Written by docs/make_providers.py from the presets; do not edit. -->\n"
BEGIN_VIEWS = "<!-- Written by docs/make_providers.py from the table of views; do not edit. -->\n"
END = "<!-- End of what is written. -->\n"
_ADDRESS = re.compile(r"https://[^\s,]+")


def presets_section() -> str:
    """The part of the page between the two markers, including the markers."""
    presets = list(PRESETS.values())
    return "\n".join(
        [
            BEGIN,
            "| Model | Service | Key variable | Prices |",
            "| --- | --- | --- | --- |",
            *map(_place_row, presets),
            "",
            "| Provider | Image formats | Limits |",
            "| --- | --- | --- |",
            *map(_takes_row, presets),
            "",
            *(line for each in presets for line in (_note(each), "")),
            END,
        ]
    )


def views_section() -> str:
    """The table of what models see of a picture, including its markers."""
    return "\n".join(
        [
            BEGIN_VIEWS,
            "| Models | Resized before the model sees it | Sees of 1,024² | Tokens | Of 1,024² | Source |",
            "| --- | --- | --- | --- | --- | --- |",
            *map(_view_row, FAMILIES),
            "",
            END,
        ]
    )


def providers_page(page: str) -> str:
    """The page with those parts up to date."""
    for begin, section in ((BEGIN, presets_section()), (BEGIN_VIEWS, views_section())):
        before, _, rest = page.partition(begin)
        page = before + section + rest.partition(END)[2]
    return page


def _view_row(family: Family) -> str:
    geometry = family.geometry
    across, down = geometry.seen(1024, 1024)
    seen = f"{across:,} × {down:,}" if geometry.sized else "not known"
    tokens = f"{geometry.tokens(1024, 1024):,}"
    return _row(family.name, geometry.resizing, seen, geometry.counting, tokens, family.source)


def _place_row(preset: Preset) -> str:
    keys = " or ".join(f"`{name}`" for name in preset.key_variables)
    return _row(
        f"`{preset.name}/NAME`",
        preset.title,
        keys + (", if required" if preset.local else ""),
        "built in" if preset.prices else "with `--prices`",
    )


def _takes_row(preset: Preset) -> str:
    variant, takes = preset.variant, preset.takes
    most = [
        f"{variant.max_images} images per request" if variant.max_images else "",
        f"{variant.max_request_bytes / 1e6:g} MB per request" if variant.max_request_bytes else "",
        f"{takes.max_image_bytes / 1e6:g} MB per image" if takes.max_image_bytes else "",
        f"{takes.max_image_side:,} px" if takes.max_image_side else "",
    ]
    formats = {kind.removeprefix("image/").upper().replace("WEBP", "WebP") for kind in takes.media_types}
    return _row(
        f"`{preset.name}`",
        ", ".join(sorted(formats)),
        ", ".join(filter(None, most)) or "none known",
    )


def _note(preset: Preset) -> str:
    keys_from = _ADDRESS.sub(r"<\g<0>>", preset.keys_from or "")
    parts = [
        f"**{preset.name}.** {_address(preset)}.",
        f"Keys: {keys_from}." if keys_from else "",
        f"Output limit: `{preset.variant.limit}`.",
        f"Refusals: {preset.refuses}." if preset.refuses else "",
        preset.notes,
        f"Not verified: {preset.unverified}." if preset.unverified else "",
        f"Sources: {', '.join(f'<{source}>' for source in preset.sources)}." if preset.sources else "",
    ]
    return " ".join(filter(None, parts))


def _address(preset: Preset) -> str:
    # The first variable stands where its value goes.
    place = "$" + "".join(preset.place_variables[:1])
    address = f"Address: `{preset.addresses[0].replace('{place}', place)}`"
    if preset.place_variables:
        address += f" (set {' or '.join(f'`{name}`' for name in preset.place_variables)})"
    return f"{address}, or `{preset.url_variable}`"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    TARGET.write_text(providers_page(TARGET.read_text(encoding="utf-8")), encoding="utf-8")
