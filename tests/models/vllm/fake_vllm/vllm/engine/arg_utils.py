from __future__ import annotations

import argparse
from typing import Any

FlexibleArgumentParser = argparse.ArgumentParser


class EngineArgs:
    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
        parser.add_argument("--model")
        parser.add_argument("--structured-outputs-config")
        parser.add_argument("--max-model-len", type=int)
        return parser

    @staticmethod
    def from_cli_args(arguments: Any) -> Any:
        return arguments
