"""Write the preset tables in `docs/providers.md` from the presets: `python docs/make_providers.py`.

A test fails if the page differs from what this script writes.
"""

from __future__ import annotations

import re
from pathlib import Path

from uncanny.models.presets import PRESETS, Preset

TARGET = Path(__file__).with_name("providers.md")
BEGIN = "<!-- Written by docs/make_providers.py from the presets; do not edit. -->\n"
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


def providers_page(page: str) -> str:
    """The page with that part up to date."""
    before, _, rest = page.partition(BEGIN)
    return before + presets_section() + rest.partition(END)[2]


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
