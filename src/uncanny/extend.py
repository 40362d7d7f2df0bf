"""What extensions are written with: agents, nodes and graphs of annotation, and protocols of your own.

Providers need `uncanny` alone. docs/extend.md shows how the names go together; nothing is imported before it
is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uncanny import lazy_names

if TYPE_CHECKING:
    from uncanny.agents.common.annotate_context import AnnotateContext as AnnotateContext
    from uncanny.agents.common.annotate_context import AnnotateState as AnnotateState
    from uncanny.agents.common.annotate_context import BatchFinding as BatchFinding
    from uncanny.agents.common.annotate_context import BatchState as BatchState
    from uncanny.agents.common.annotate_context import ObjectState as ObjectState
    from uncanny.agents.common.annotate_context import PackedState as PackedState
    from uncanny.agents.common.annotate_context import ScanState as ScanState
    from uncanny.agents.common.annotate_context import SecondLook as SecondLook
    from uncanny.agents.common.annotate_context import Sighting as Sighting
    from uncanny.agents.common.annotate_context import as_findings as as_findings
    from uncanny.agents.common.batches import look_at_parts as look_at_parts
    from uncanny.agents.common.context import ImageContext as ImageContext
    from uncanny.agents.common.own_agent import OwnAgent as OwnAgent
    from uncanny.agents.steps import ListStep as ListStep
    from uncanny.agents.steps import Step as Step
    from uncanny.answers.forms import FINDINGS as FINDINGS
    from uncanny.answers.json_text import read_text as read_text
    from uncanny.answers.packed import FAULTS as FAULTS
    from uncanny.answers.packed import PART_FAULTS as PART_FAULTS
    from uncanny.client.calls import usage as usage
    from uncanny.eval.common.estimates import interval_words as interval_words
    from uncanny.eval.common.inputs.problems import parse_records as parse_records
    from uncanny.eval.common.pages.page import Card as Card
    from uncanny.eval.common.pages.page import percent as percent
    from uncanny.eval.common.pages.page import write_result_page as write_result_page
    from uncanny.eval.common.pages.pictures import Layer as Layer
    from uncanny.eval.common.pages.pictures import Mark as Mark
    from uncanny.eval.common.pages.pictures import PageViews as PageViews
    from uncanny.eval.common.pages.pictures import Shot as Shot
    from uncanny.eval.common.pages.pictures import View as View
    from uncanny.eval.common.run_result import RunResult as RunResult
    from uncanny.eval.common.tables.table import Column as Column
    from uncanny.eval.common.tables.table import Table as Table
    from uncanny.eval.common.tables.table import TableResult as TableResult
    from uncanny.eval.metrics.intervals import wilson_interval as wilson_interval
    from uncanny.graphs.annotate import AnnotateGraph as AnnotateGraph
    from uncanny.graphs.annotate import AnnotateInput as AnnotateInput
    from uncanny.graphs.annotate import AnnotateNodes as AnnotateNodes
    from uncanny.graphs.annotate import annotate_graph as annotate_graph
    from uncanny.graphs.packed import PackedGraph as PackedGraph
    from uncanny.graphs.packed import PackedNodes as PackedNodes
    from uncanny.graphs.packed import packed_graph as packed_graph
    from uncanny.images.file_bytes import RecordedFile as RecordedFile
    from uncanny.images.prepared import prepare as prepare
    from uncanny.models.base import sent_image as sent_image
    from uncanny.models.parameters import OutputTokens as OutputTokens
    from uncanny.models.parameters import SamplingParameters as SamplingParameters
    from uncanny.models.parameters import Temperature as Temperature
    from uncanny.parameters import takes as takes
    from uncanny.prompts import PromptSet as PromptSet
    from uncanny.prompts import load_prompt_set as load_prompt_set
    from uncanny.records.record_file import RecordFile as RecordFile
    from uncanny.runs.engine import Engine as Engine
    from uncanny.runs.inputs import Names as Names
    from uncanny.runs.parameters import AskParameters as AskParameters
    from uncanny.runs.progress import Progress as Progress
    from uncanny.runs.run import run_with as run_with
    from uncanny.runs.sync import blocking as blocking
    from uncanny.runs.task import Task as Task
    from uncanny.runs.task import asking as asking
    from uncanny.schema import Region as Region

__all__, __getattr__, __dir__ = lazy_names(__name__)
