"""Where an edit changed the picture, and whether that is one place: Semi-Truths, section 3.1 and algorithm 2.

The paper prints the steps, not every constant, and the authors' released program does not follow the print. A
protocol is one of three ways; `docs/methods.md` has them side by side, with reasons.

- `uncanny`: changed objects of a few pixels are dropped, the others dilated, and small components dropped.
  Components that lie near each other are one cluster, and clusters are what an edit has many of.
- `paper`, as printed: everything that changed is dilated, and components are counted and placed as they are
  then. Only for the mask are those near each other merged, and small ones dropped.
- `release`, the authors' program: the mask of `uncanny`; components are what an edit has many of, and far
  apart is a quarter of the image's diagonal.

Areas are shares of the image in 0–1, distances are in pixels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from uncanny.eval.metrics import (
    DIFFERENCE,
    DIFFUSED_RATIO,
    DILATION,
    LEAST_COMPONENT,
    LEAST_OBJECT,
    NEIGHBOURS,
    PROTOCOL,
    EditProtocol,
)
from uncanny.eval.metrics.edits import MOST_DIFFERENT, Mask, windows_with

Shape = Literal["localized", "diffused"]
Points = NDArray[np.float64]
Labels = NDArray[np.signedinteger[Any]]

# Of the diagonal, from where on centroids are far apart in the authors' program.
_FAR: Final = 0.25
# Above it, distances and links are taken between points that can matter alone.
_MANY_POINTS: Final = 1000


class Component(NamedTuple):
    """One connected part of a post-edit mask: pixels, and the row and column of its centroid from 0."""

    area: int
    row: float
    column: float


@dataclass(frozen=True, slots=True, eq=False)
class PostEdit:
    """Where an edit changed the picture, found from the pixels alone.

    `components` are the largest first; by `paper` those too that are not in the `mask`. `ratio` is the share
    of the mask, `largest_component_ratio` that of the first component; 0 where nothing changed enough.
    `largest_centroid_distance` is between two of the centroids, 0 with fewer than two components. `clusters`
    counts components that lie near each other as one.
    """

    mask: Mask
    components: tuple[Component, ...]
    ratio: float
    largest_component_ratio: float
    largest_centroid_distance: float
    clusters: int


def post_edit(
    squares: NDArray[np.uint32],
    *,
    protocol: EditProtocol = PROTOCOL,
    threshold: float = DIFFERENCE,
    least_object: int | None = None,
    dilation: int = DILATION,
    least_component: int = LEAST_COMPONENT,
    neighbours: float = NEIGHBOURS,
) -> PostEdit:
    """The post-edit mask of what `squared_difference` gives, and what is measured on it.

    Pixels whose squared difference / (3·255²) exceeds `threshold` (0–1) are changed. Changed objects under
    `least_object` pixels (None: as `LEAST_OBJECT` says) are dropped, the others dilated by a square of
    `dilation` pixels (odd). Pixels that touch at a corner are connected. Components whose centroids are
    nearer than `neighbours` pixels, directly or by way of others, are one cluster. Then components under
    `least_component` pixels are dropped, by `paper` clusters, and what is left is measured; by `paper` the
    components of before.

    Source: Semi-Truths, algorithm 2, which names the threshold, the square and the order of the steps. The
    other constants are those of the authors' released program.
    """
    if dilation < 1 or dilation % 2 == 0:
        raise ValueError(f"dilation must be odd and 1 at least, not {dilation!r}")
    changed = squares > threshold * MOST_DIFFERENT
    least_object = LEAST_OBJECT[protocol] if least_object is None else least_object
    mask = np.zeros(squares.shape, dtype=np.bool_)
    box = _bounding_box(changed, dilation // 2)
    if box is None:
        return PostEdit(mask, (), 0.0, 0.0, 0.0, 0)
    labels, areas, _ = _components(changed[box])
    kept = np.pad(_kept(labels, areas >= least_object), dilation // 2)
    labels, areas, centroids = _components(windows_with(kept, dilation))
    if protocol == "paper":
        groups = _groups(centroids, neighbours)
        large = np.bincount(groups, areas)[groups] >= least_component
    else:
        large = areas >= least_component
        groups = _groups(centroids[large], neighbours)
    mask[box] = _kept(labels, large)
    ratio = int(areas[large].sum()) / mask.size
    if protocol != "paper":
        areas, centroids = areas[large], centroids[large]
    centroids += (box[0].start, box[1].start)
    found = zip(areas.tolist(), centroids.tolist(), strict=True)
    components = sorted((Component(area, *place) for area, place in found), reverse=True)
    return PostEdit(
        mask,
        tuple(components),
        ratio,
        (components[0].area if components else 0) / mask.size,
        _largest_distance(centroids),
        len(set(groups.tolist())),
    )


class ShapeRule(NamedTuple):
    """When an edit counts as diffused; see `edit_shape`.

    `number` and `distance` are None where there is no set to compare with: then the ratio alone decides.
    `at_ratio` says whether a component of just `ratio` is enough.
    """

    ratio: float = DIFFUSED_RATIO
    number: float | None = None
    distance: float | None = None
    at_ratio: bool = True


class SetShape(NamedTuple):
    """What edits of a set have on average: the mean numbers of clusters and components, and the median of the
    largest centroid distances. None without an edit."""

    clusters: float | None = None
    components: float | None = None
    distance: float | None = None


def set_shape(clusters: Sequence[int], components: Sequence[int], distances: Sequence[float]) -> SetShape:
    """What is typical of a set, an entry an edit; those without a component count with 0 in each."""
    if not clusters:
        return SetShape()
    number = len(clusters)
    return SetShape(math.fsum(clusters) / number, math.fsum(components) / number, float(np.median(distances)))


def shape_rule(
    typical: SetShape,
    size: tuple[float, float],
    *,
    protocol: EditProtocol = PROTOCOL,
    ratio: float = DIFFUSED_RATIO,
) -> ShapeRule:
    """The rule for an image of this width and height.

    The paper says "and max_centroid_dist", with nothing to compare the distance with: by `paper` any will do.
    """
    match protocol:
        case "uncanny":
            return ShapeRule(ratio, typical.clusters, typical.distance)
        case "paper":
            return ShapeRule(ratio, typical.components, 0.0)
        case "release":
            return ShapeRule(ratio, typical.components, _FAR * math.hypot(*size), at_ratio=False)


def edit_shape(
    largest_component_ratio: float, number: int, largest_centroid_distance: float, rule: ShapeRule
) -> Shape | None:
    """Whether an edit is spread over the image: None where nothing changed enough to have a place.

    `diffused` is what has a component of at least `rule.ratio` of the image, or both a `number` above
    `rule.number` and a largest centroid distance above `rule.distance`. What is counted are clusters by the
    protocol `uncanny`, and else components.
    """
    if not number:
        return None
    large = largest_component_ratio >= rule.ratio if rule.at_ratio else largest_component_ratio > rule.ratio
    spread = (
        rule.number is not None
        and rule.distance is not None
        and number > rule.number
        and largest_centroid_distance > rule.distance
    )
    return "diffused" if large or spread else "localized"


def _bounding_box(mask: Mask, margin: int) -> tuple[slice, slice] | None:
    """Where the mask is not empty, with a margin as far as the image goes."""
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not len(rows):
        return None
    top, left = max(0, int(rows[0]) - margin), max(0, int(columns[0]) - margin)
    return slice(top, int(rows[-1]) + margin + 1), slice(left, int(columns[-1]) + margin + 1)


def _kept(labels: Labels, wanted: NDArray[np.bool_]) -> Mask:
    """The components that are wanted."""
    result: Mask = np.concatenate([[False], wanted])[labels]
    return result


def _components(mask: Mask) -> tuple[Labels, NDArray[np.int64], Points]:
    """The 8-connected components: labels, 0 for none and from 1 on, areas, and centroids from 0."""
    from scipy.ndimage import label  # type: ignore[import-untyped]  # slow to import

    labels, number = label(mask, structure=np.ones((3, 3), dtype=np.int8))
    rows, columns = np.nonzero(labels)
    numbers = labels[rows, columns]
    areas: NDArray[np.int64] = np.bincount(numbers, minlength=number + 1)[1:]
    # Sums of whole numbers below 2**53: exact.
    sums = [np.bincount(numbers, weights=places, minlength=number + 1)[1:] for places in (rows, columns)]
    return labels, areas, np.stack(sums, axis=1) / areas[:, None]


def _groups(points: Points, nearer_than: float) -> NDArray[np.int64]:
    """The number of the group that each point is in; two of a group are linked by steps that short."""
    from scipy.sparse import coo_array  # type: ignore[import-untyped]  # slow to import
    from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]
    from scipy.spatial import KDTree  # type: ignore[import-untyped]

    if len(points) <= _MANY_POINTS:
        if len(points) < 2:
            return np.arange(len(points))
        links = KDTree(points).query_pairs(math.nextafter(nearer_than, 0.0), output_type="ndarray")
    else:
        links = _nearest_links(points)
        links = links[np.linalg.norm(points[links[:, 0]] - points[links[:, 1]], axis=1) < nearer_than]
    graph = coo_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(len(points),) * 2)
    groups: NDArray[np.int64] = connected_components(graph, directed=False)[1]
    return groups


def _nearest_links(points: Points) -> NDArray[np.intp]:
    """Links that hold the shortest steps from any point to all others: of a Delaunay triangulation."""
    from scipy.spatial import Delaunay, QhullError

    try:
        triangles = Delaunay(points)
    except QhullError:  # all on a line
        order = np.lexsort(points.T)
        return np.stack([order[:-1], order[1:]], axis=1)
    sides = [triangles.simplices[:, pair] for pair in ((0, 1), (1, 2), (2, 0))]
    # Points that lie on another one are in no triangle.
    return np.concatenate([*sides, triangles.coplanar[:, [0, 2]]])


def _largest_distance(points: Points) -> float:
    if len(points) < 2:
        return 0.0
    from scipy.spatial.distance import pdist  # type: ignore[import-untyped]

    if len(points) > _MANY_POINTS:
        points = _outermost(points)
    return float(pdist(points).max())


def _outermost(points: Points) -> Points:
    """Those on the convex hull, among which the two farthest apart are."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        vertices: NDArray[np.intp] = ConvexHull(points).vertices
        return points[vertices]
    except QhullError:  # all on a line, where the two ends are the farthest apart
        order = np.lexsort(points.T)
        return points[order[[0, -1]]]
