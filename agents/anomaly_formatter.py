"""AnomalyFormatter: the quadruples, out of the findings about all objects.

Source: AnomReason, section 2.3. In the packed schedule the integrator has looked at the picture with all of
them in view, and the formatter writes the final texts from what it left, without the picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from uncanny.agents.common.annotate_context import (
    AnnotateState,
    Context,
    JudgedFault,
    PackedState,
    findings_of,
)
from uncanny.agents.common.context import as_json
from uncanny.agents.object_perceiver import object_key
from uncanny.agents.steps import FORMAT, WRITE
from uncanny.answers.packed import FINAL_TEXTS, FinalText, Numbered
from uncanny.errors import StepFailedError
from uncanny.schema import Anomaly, Candidate, StepError


async def format_anomalies(state: AnnotateState, image: Context) -> AnnotateState:
    """`anomalies`: merged and verified quadruples. Without findings no call is made, and there are none."""
    findings = findings_of(state)
    if not findings:
        return {"anomalies": []}
    limit = image.config.formatter_output_tokens
    names = "; ".join(each.name for each in (*state.get("objects", ()), *state.get("cut", ())))
    verified = await image.items(FORMAT, max_output_tokens=limit, findings=as_json(findings), names=names)
    return {"anomalies": list(verified)}


async def write_anomalies(state: PackedState, image: Context) -> PackedState:
    """`anomalies`: the final texts of all `faults`, and in `candidates` which of them each finding became.

    A fault of which no answer has a text is an error of the record: there is no severity to be made up.
    Raises StepFailedError where there is no text at all.
    """
    faults = state["faults"]
    if not faults:
        return {"anomalies": []}
    # An integrator of one's own may give no candidates, or some of them.
    candidates = {each.number: each for each in state["candidates"]}
    reader, errors = Numbered(FINAL_TEXTS, len(faults)), list[StepError]()
    rows = [
        (
            {
                "id": place,
                "objects": _objects(fault, candidates),
                "phenomenon": fault["phenomenon"],
                "reasoning": fault["reasoning"],
            },
            None,
        )
        for place, fault in enumerate(faults, start=1)
    ]
    try:
        texts = await image.answer(
            WRITE,
            reader.read,
            max_output_tokens=image.config.formatter_output_tokens,
            findings=partial(image.shown, rows),
            count=str(len(faults)),
        )
    except StepFailedError as failed:
        if not reader.best:
            raise
        texts = reader.best
        # What was spoilt beside a whole account is no loss.
        if reader.missing:
            errors.append(failed.record)
    names = {object_key(each.name): each.name for each in (*state["objects"], *state["cut"])}
    anomalies = [
        _anomaly(text, [faults[place - 1] for place in sorted(text.ids)], candidates, names) for text in texts
    ]
    return {"anomalies": anomalies, "candidates": _placed(candidates, faults, texts), "errors": errors}


def _anomaly(
    text: FinalText, faults: Sequence[JudgedFault], candidates: Mapping[int, Candidate], names: dict[str, str]
) -> Anomaly:
    found_by = [each.found_by for fault in faults for each in _of(fault, candidates)]
    listed = [names[object_key(name)] for name in text.objects if object_key(name) in names]
    return Anomaly(
        name=text.name,
        phenomenon=text.phenomenon or faults[0]["phenomenon"],
        reasoning=text.reasoning or faults[0]["reasoning"],
        severity=text.realism,
        # The writer may word names anew, and those it words so say nothing to who reads the record.
        objects=tuple(
            dict.fromkeys(listed or (name for fault in faults for name in _objects(fault, candidates)))
        ),
        box=next((fault["box"] for fault in faults if fault["box"] is not None), None),
        kind=text.kind,
        found_by=tuple(dict.fromkeys(found_by)) or None,
    )


def _of(fault: JudgedFault, candidates: Mapping[int, Candidate]) -> list[Candidate]:
    return [candidates[number] for number in fault["numbers"] if number in candidates]


def _objects(fault: JudgedFault, candidates: Mapping[int, Candidate]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for each in _of(fault, candidates) for name in each.objects))


def _placed(
    candidates: Mapping[int, Candidate], faults: Sequence[JudgedFault], texts: Sequence[FinalText]
) -> list[Candidate]:
    """The candidates with the anomaly each became; of several faults in one text the later are merged."""
    placed = dict(candidates)
    for anomaly, text in enumerate(texts):
        for rank, place in enumerate(sorted(text.ids)):
            for each in _of(faults[place - 1], candidates):
                update: dict[str, object] = {"anomaly": anomaly}
                if rank:
                    update["fate"] = "merged"
                placed[each.number] = each.model_copy(update=update)
    return list(placed.values())
