"""AnomalyFormatter: the quadruples, out of the findings about all objects.

Source: AnomReason, section 2.3. In the packed schedule the integrator has written the final texts with the
picture in view; the formatter puts them in order, and asks a model only for what they lack.
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
from uncanny.answers.language import is_in_language
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
    """`anomalies`: all `faults`, the least real first, and in `candidates` which of them each finding became.

    A model is asked only about faults without a name or a severity, and those whose texts are not in the
    language asked for. A fault of which no answer has name and severity is an error of the record: there is
    no severity to be made up. Raises StepFailedError where there is no anomaly at all.
    """
    faults, errors = list(state["faults"]), list[StepError]()
    # An integrator of one's own may give no candidates, or some of them.
    candidates = {each.number: each for each in state["candidates"]}
    lacking = [place for place, each in enumerate(faults) if not _is_whole(each, image)]
    if lacking:
        try:
            texts = await _write([faults[place] for place in lacking], candidates, image, errors)
        except StepFailedError as failed:
            if not any(each.get("name") and "severity" in each for each in faults):
                raise
            texts = {}
            errors.append(failed.record)
        for number, text in texts.items():
            fault = faults[lacking[number - 1]]
            faults[lacking[number - 1]] = {
                **fault,
                "name": text.name,
                "phenomenon": text.phenomenon or fault["phenomenon"],
                "reasoning": text.reasoning or fault["reasoning"],
                "severity": fault.get("severity", text.realism),
                "kind": text.kind or fault.get("kind"),
                "objects": text.objects or fault.get("objects", ()),
            }
    whole = [each for each in faults if each.get("name") and "severity" in each]
    whole.sort(key=lambda each: (each["severity"], each["numbers"]))
    names = {object_key(each.name): each.name for each in (*state["objects"], *state.get("cut", ()))}
    anomalies = [_anomaly(each, candidates, names) for each in whole]
    placed = dict(candidates)
    for place, each in enumerate(whole):
        for number in each["numbers"]:
            if number in placed:
                placed[number] = placed[number].model_copy(update={"anomaly": place})
    return {"anomalies": anomalies, "candidates": list(placed.values()), "errors": errors}


def _is_whole(fault: JudgedFault, image: Context) -> bool:
    texts = " ".join((fault.get("name", ""), fault["phenomenon"], fault["reasoning"]))
    return bool(fault.get("name")) and "severity" in fault and is_in_language(texts, image.config.language)


async def _write(
    faults: Sequence[JudgedFault],
    candidates: Mapping[int, Candidate],
    image: Context,
    errors: list[StepError],
) -> dict[int, FinalText]:
    """What faults lack, by their places, from 1; `errors` has why one of them has nothing."""
    reader = Numbered(FINAL_TEXTS, len(faults))
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
    # Several faults in one text share its name, and keep what they say.
    return {
        place: text if place == min(text.ids) else _of_other(text) for text in texts for place in text.ids
    }


def _of_other(text: FinalText) -> FinalText:
    return text.model_copy(update={"phenomenon": "", "reasoning": ""})


def _anomaly(fault: JudgedFault, candidates: Mapping[int, Candidate], names: Mapping[str, str]) -> Anomaly:
    found_by = [candidates[number].found_by for number in fault["numbers"] if number in candidates]
    # The writer may word names anew, and those it words so say nothing to who reads the record.
    listed = [names[key] for name in fault.get("objects", ()) if (key := object_key(name)) in names]
    return Anomaly(
        name=fault["name"],
        phenomenon=fault["phenomenon"],
        reasoning=fault["reasoning"],
        severity=fault["severity"],
        confidence=fault.get("confidence"),
        objects=tuple(dict.fromkeys(listed or _objects(fault, candidates))),
        box=fault["box"],
        kind=fault.get("kind"),
        found_by=tuple(dict.fromkeys(found_by)) or None,
    )


def _objects(fault: JudgedFault, candidates: Mapping[int, Candidate]) -> tuple[str, ...]:
    found = (candidates[number].objects for number in fault["numbers"] if number in candidates)
    return tuple(dict.fromkeys(name for names in found for name in names)) or fault.get("objects", ())
