"""Print what the libraries of three forms read of an export; labelme saves it again."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def label_studio(folder: Path) -> object:
    from label_studio_sdk.label_interface import LabelInterface  # type: ignore[import-not-found]

    interface = LabelInterface((folder / "labelstudio/config.xml").read_text(encoding="utf-8"))
    tasks = json.loads((folder / "labelstudio/tasks.json").read_bytes())
    predictions = [prediction for task in tasks for prediction in task["predictions"]]
    errors = [interface.validate_prediction(prediction, return_errors=True) for prediction in predictions]
    broken = json.loads(json.dumps(predictions[0]))
    broken["result"][0]["value"]["rectanglelabels"] = ["no such kind"]
    return {
        "controls": sorted(interface._controls),
        "predictions": len(predictions),
        "errors": [each for each in errors if each],
        "takes_anything": interface.validate_prediction(broken),
    }


def cvat(folder: Path) -> object:
    import datumaro  # type: ignore[import-not-found]

    dataset = datumaro.Dataset.import_from(str(folder / "annotations.xml"), "cvat")
    labels = dataset.categories()[datumaro.AnnotationType.label]
    return [
        [
            {
                "type": annotation.type.name,
                "label": labels[annotation.label].name,
                "box": annotation.get_bbox() if annotation.type.name == "bbox" else None,
                "attributes": annotation.attributes,
            }
            for annotation in item.annotations
        ]
        for item in dataset
    ]


def labelme(folder: Path) -> object:
    """What is loaded; each file is saved again as the program saves it, with a moved box and a verdict."""
    from labelme import LabelFile  # type: ignore[import-not-found]

    loaded = {}
    for file in sorted((folder / "labelme").glob("*.json")):
        content = LabelFile(str(file))
        loaded[file.name] = {
            "shapes": [[each["label"], each["shape_type"], each["points"]] for each in content.shapes],
            "picture": len(content.imageData),
        }
        shapes = []
        for shape in content.shapes:
            others = shape.pop("other_data")
            shapes.append(shape | others)
        if file.name.startswith("c-"):
            shapes[0] |= {"points": [[2.0, 2.0], [9.0, 9.0]], "flags": {"reject": True}}
        about = json.loads(file.read_bytes())
        content.save(
            str(file), shapes, content.imagePath, about["imageHeight"], about["imageWidth"],
            other_data=content.otherData, flags=content.flags,
        )  # fmt: skip
    return loaded


if __name__ == "__main__":
    place = Path(sys.argv[1])
    print(json.dumps({"label_studio": label_studio(place), "cvat": cvat(place), "labelme": labelme(place)}))
