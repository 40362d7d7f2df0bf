"""Print the pixels that labelme gives each shape of the files in a folder, by file, packed."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path

import numpy as np
from labelme import LabelFile  # type: ignore[import-not-found]
from labelme.utils import shapes_to_label  # type: ignore[import-not-found]

if __name__ == "__main__":
    masks = {}
    for file in sorted(Path(sys.argv[1]).glob("*.json")):
        content = json.loads(file.read_bytes())
        size = content["imageHeight"], content["imageWidth"]
        drawn = [shapes_to_label(size, [each], {each["label"]: 1})[0] for each in LabelFile(str(file)).shapes]
        masks[file.name] = [base64.b64encode(np.packbits(each > 0).tobytes()).decode() for each in drawn]
    print(json.dumps(masks))
