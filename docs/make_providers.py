"""Write the tables of presets in `docs/providers.md` from the presets: `python docs/make_providers.py`.

A test fails when the page does not have what this writes.
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
    """The part of the page between the two marks, marks included."""
    presets = list(PRESETS.values())
    return "\n".join(
        [
            BEGIN,
            "| Model | Where | Key | Prices |",
            "| --- | --- | --- | --- |",
            *map(_place_row, presets),
            "",
            "| Provider | Pictures | Most |",
            "| --- | --- | --- |",
            *map(_takes_row, presets),
            "",
            *(line for each in presets for line in (_note(each), "")),
            END,
        ]
    )


def providers_page(page: str) -> str:
    """The page with that part as it is now."""
    before, _, rest = page.partition(BEGIN)
    return before + presets_section() + rest.partition(END)[2]


def _place_row(preset: Preset) -> str:
    keys = " or ".join(f"`{name}`" for name in preset.key_variables)
    return _row(
        f"`{preset.name}/NAME`",
        preset.title,
        keys + (", if it wants one" if preset.local else ""),
        "listed" if preset.prices else "yours only",
    )


def _takes_row(preset: Preset) -> str:
    variant, takes = preset.variant, preset.takes
    most = [
        f"{variant.max_images} images" if variant.max_images else "",
        f"{variant.max_request_bytes / 1e6:g} MB a request" if variant.max_request_bytes else "",
        f"{takes.max_image_bytes / 1e6:g} MB an image" if takes.max_image_bytes else "",
        f"{takes.max_image_side:,} px" if takes.max_image_side else "",
    ]
    formats = {kind.removeprefix("image/").upper().replace("WEBP", "WebP") for kind in takes.media_types}
    return _row(
        f"`{preset.name}`",
        ", ".join(sorted(formats)),
        ", ".join(filter(None, most)) or "no limit known",
    )


def _note(preset: Preset) -> str:
    keys_from = _ADDRESS.sub(r"<\g<0>>", preset.keys_from or "")
    parts = [
        f"**{preset.name}.** {_address(preset)}.",
        f"Keys come from {keys_from}." if keys_from else "",
        f"A refusal is {preset.refuses}." if preset.refuses else "",
        preset.notes,
        f"Not verified: {preset.unverified}." if preset.unverified else "",
        f"See {', '.join(f'<{source}>' for source in preset.sources)}." if preset.sources else "",
    ]
    return " ".join(filter(None, parts))


def _address(preset: Preset) -> str:
    # The first variable stands where its value goes.
    place = "$" + "".join(preset.place_variables[:1])
    address = f"At `{preset.addresses[0].replace('{place}', place)}`"
    if preset.place_variables:
        address += f" with {' or '.join(f'`{name}`' for name in preset.place_variables)} set"
    return (
        f"{address}; `{preset.url_variable}` is another address. The output limit is `{preset.variant.limit}`"
    )


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    TARGET.write_text(providers_page(TARGET.read_text(encoding="utf-8")), encoding="utf-8")
