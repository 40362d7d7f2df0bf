"""What making candidates returns: its records, and a table of candidates or of images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar

from uncanny.eval.common.frames import FILE, USAGE, Cells, Row, table_cells
from uncanny.eval.common.run_result import ImagesRun, Records
from uncanny.eval.pairs.data import CANDIDATES, Original
from uncanny.schema import STATUSES


class MakeRun(ImagesRun[Original]):
    """A run of `uncanny.pairs.make`: a record an image, and a row a candidate, or an image, as a data
    frame."""

    task = "pairs_make"
    record_file = CANDIDATES
    record_type = Original
    record_key = ("image",)
    statuses = STATUSES
    finding_columns: ClassVar[Cells] = {
        **dict.fromkeys(("image", "id", "region", "mask_source", "prompt", "model", "revision"), "text"),
        **{"seed": "whole", "guidance": "real", "strength": "real", "steps": "whole"},
        **{"mask_share": "real", "edited": "text", "rejected": "text", "why": "text"},
    }
    image_columns: ClassVar[Cells] = {
        **{"image": "text", "status": "text", "candidates": "whole", "no_region": "text"},
        **FILE,
        **USAGE,
    }
    columns = finding_columns

    @property
    def originals(self) -> Records[Original]:
        """One for each image, in order of their names when the run is finished."""
        return self.records

    def made(self) -> int:
        """How many candidates there are."""
        return sum(each.rejected is None for record in self.records for each in record.candidates)

    def rejected(self) -> Mapping[str, int]:
        """How many were rejected at each step."""
        rejected = (each.rejected for record in self.records for each in record.candidates)
        return Counter(each.step for each in rejected if each is not None)

    def files_json(self) -> dict[str, str | None]:
        return {"candidates": str(self.path / self.record_file), "report": None}

    def found_json(self) -> dict[str, Any]:
        return {"made": self.made(), "rejected": dict(self.rejected()), **super().found_json()}

    def finding_rows(self) -> Any:
        for record in self.records:
            for each in record.candidates:
                rejected = each.rejected
                yield {
                    "image": record.image,
                    **{name: getattr(each, name) for name in self.finding_columns if hasattr(each, name)},
                    "region": each.region.name,
                    "rejected": None if rejected is None else rejected.step,
                    "why": None if rejected is None else rejected.why,
                } | table_cells(record)

    def image_rows(self) -> Any:
        for record in self.records:
            row: Row = {name: getattr(record, name) for name in ("image", "status", "no_region", *FILE)}
            row |= {"candidates": len(record.candidates)}
            row |= {name: getattr(record.usage, name) for name in USAGE}
            yield row | table_cells(record)
