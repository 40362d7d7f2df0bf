"""The card of a published set: what is in it, how it is asked and scored again, and under what license.

It is `README.md` of the folder, which the Hugging Face Hub shows and whose head `datasets` reads. Authors are
to write more into it, so it ends with its own digest: one that was edited is not written over.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from uncanny import __version__
from uncanny.errors import UsageError
from uncanny.eval.common.hub import Size, card_head
from uncanny.eval.mcq.data.items import QUESTIONS, Item, ItemSet
from uncanny.eval.mcq.data.released_rows import COLUMNS, IMAGE_COLUMNS
from uncanny.eval.mcq.data.texts import carried_set, carries_texts
from uncanny.prompts import PromptSet
from uncanny.wording import counted, option

CARD: Final = "README.md"
# Of the Hub: benchmarks are for testing.
SPLIT: Final = "test"
_SPLITS: Final = {
    "art_dg": "generated images with an artifact",
    "art_pg": "images with an artifact made by an edit, in pairs with `ref_pg`",
    "ref_real": "real photographs",
    "ref_pg": "the images before the edit; Q1 is not asked",
}
_SEAL: Final = re.compile(
    r"\n<!-- Written by uncanny [^ ]+; sha256 of the text above: ([0-9a-f]{64}) -->\n\Z"
)


def prompts_id(item: Item, ours: PromptSet) -> str | None:
    """The id of uncanny's prompts where an item is asked with them; None for its own, and for a user's."""
    if carries_texts(item):
        carried = carried_set(item)
        return None if carried is None else carried.id
    return None if ours.own else ours.id


@dataclass(frozen=True, slots=True)
class Card:
    """What a card is made of; `ours` are the prompts of items without their own."""

    items: ItemSet
    ours: PromptSet
    license: str | None
    title: str

    def text(self, schema: Any, size: Size) -> str:
        """The whole file; `schema` and `size` are those of the data."""
        head = card_head(
            license=self.license or "unknown",
            title=self.title,
            tasks=("visual-question-answering", "multiple-choice"),
            tags=("uncanny", "ai-generated-images", "benchmark"),
            rows=len(self.items),
            splits={SPLIT: f"data/{SPLIT}-*.parquet"},
            schema=schema,
            pictures=IMAGE_COLUMNS,
            counts={SPLIT: size},
        )
        body = _BODY.format(
            title=" ".join(self.title.split()),
            version=__version__,
            size=counted(len(self.items), "image"),
            questions=counted(sum(len(item.questions()) for item in self.items), "question"),
            splits=self._splits(),
            counts=self._counts(),
            prompts=self._prompts(),
            further=_further([name for name in schema.names if name not in COLUMNS]),
            license=self._license(),
        )
        text = f"{head}\n\n{body}"
        digest = hashlib.sha256(text.encode()).hexdigest()
        return f"{text}\n<!-- Written by uncanny {__version__}; sha256 of the text above: {digest} -->\n"

    def _splits(self) -> str:
        sizes = Counter[str](item.split for item in self.items)
        rows = [f"| `{name}` | {sizes[name]:,} | {what} |" for name, what in _SPLITS.items() if sizes[name]]
        return "\n".join(["| `split` | Images | What they are |", "| --- | --- | --- |", *rows])

    def _counts(self) -> str:
        asked = [sum(item.choice(question) is not None for item in self.items) for question in QUESTIONS]
        each = ", ".join(
            f"{question.upper()} {number:,}" for question, number in zip(QUESTIONS, asked, strict=True)
        )
        types = Counter(item.artifact_type for item in self.items if item.artifact_type is not None)
        kinds = ", ".join(f"{name} {number:,}" for name, number in types.most_common())
        pairs = len({item.pair_id for item in self.items if item.pair_id is not None})
        return "\n".join(
            [
                f"- Questions: {each}",
                f"- Pairs (`pair_id`): {pairs:,}",
                *([f"- Artifact types (`artifact_type`): {kinds}"] if kinds else []),
            ]
        )

    def _prompts(self) -> str:
        ids = Counter(prompts_id(item, self.ours) for item in self.items)
        words = [
            f"{counted(number, 'image')} with uncanny's prompts `{name}`"
            if name is not None
            else f"{counted(number, 'image')} with prompts of the set's own"
            for name, number in sorted(ids.items(), key=lambda each: each[0] or "")
        ]
        return f"{'; '.join(words)} (`prompts_id`)."

    def _license(self) -> str:
        if self.license is None:
            return (
                "Not stated. Set `license` at the top of this file, and say here what holds for the images, "
                "the questions and the prompts."
            )
        return f"`{' '.join(self.license.split())}`."


def _further(names: list[str]) -> str:
    """A row of the table of columns for the further keys of items; nothing where they have none."""
    if not names:
        return ""
    cells = (" ".join(name.split()).replace("`", "'").replace("|", "\\|") for name in names)
    return f"\n| {', '.join(f'`{cell}`' for cell in cells)} | further keys of the items |"


_BODY: Final = """\
# {title}

{size}, {questions}: does a model understand a salient artifact? A benchmark in the form of SalArt-VQA.
Is anything wrong with the picture (Q1)? Where (Q2)? In which of the boxes drawn on it (Q3)? What is it (Q4)?

{splits}

{counts}

## Ask a model and score it

With uncanny, {version} or later, from the folder that this file is in:

```sh
uncanny mcq run . --model openai/gpt-4o -o runs/gpt-4o
uncanny mcq score . runs/gpt-4o
```

Without it, make each question a call of its own; nothing is shared between questions. Send `system_prompt`
as the system text where there is one, then one user turn with the picture and the prompt. Q1, Q2 and Q4
(`q1_prompt`, `q2_prompt`, `q4_prompt`) see `image`; Q3 (`q3_prompt`) sees `q3_overlay_image`. Send the bytes
as they are, and temperature 0 where the model takes one. A null prompt is a question that is not asked. Q1
is answered with yes or no, the others with a letter, bare or as JSON (`answer_form`).

Write a line an image, `{{"row_id": "…", "q1": "yes", "q2": "B", "q3": "B", "q4": "B"}}`, and score the file:

```sh
uncanny mcq score . predictions.jsonl
```

## Load it

```python
from datasets import load_dataset

rows = load_dataset(".", split="test")
print(rows[0]["q2_prompt"])
rows[0]["q3_overlay_image"].show()
```

| Column | Is |
| --- | --- |
| `row_id` | the item's id |
| `image`, `q3_overlay_image` | the picture, and the same with boxes A to D drawn on it |
| `image_role`, `split`, `pair_id` | what the picture is, and which belong together |
| `artifact_type` | the kind of artifact; never an answer |
| `system_prompt`, `q1_prompt` to `q4_prompt` | what is asked, word for word, options included |
| `prompts_id`, `answer_form` | whose prompts these are; whether they want a letter or JSON |
| `q2_options`, `q4_options`, `q3_boxes` | the options A to E, and the boxes in pixels: x0, y0, x1, y1 |
| `q1_answer` to `q4_answer` | the right answers |{further}

## Prompts

{prompts}

## License

{license}

## Citation

The protocol is that of *SalArt-VQA*. Cite its paper beside this set.
"""


def check_card(folder: Path) -> None:
    """Raises UsageError where the folder has a card that is not, or not only, of our writing."""
    file = folder / CARD
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}", remedy="Pass another folder.") from error
    seal = _SEAL.search(text)
    if seal is None or hashlib.sha256(text[: seal.start()].encode()).hexdigest() != seal[1]:
        raise UsageError(
            f"{file} was written or edited by hand and would be replaced",
            remedy=f"Keep a copy and give {option('force', True)}, or pass another folder.",
        )
