"""Sizes of edits: cases worked by hand, scikit-image and SciPy as second opinions, and what always holds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from scipy import ndimage  # type: ignore[import-untyped]
from scipy.cluster.hierarchy import fcluster, linkage  # type: ignore[import-untyped]
from scipy.spatial.distance import pdist  # type: ignore[import-untyped]

from uncanny.eval.metrics import NEIGHBOURS
from uncanny.eval.metrics.edits import (
    Cutoffs,
    Mask,
    Pixels,
    bin_of,
    deviation_cutoffs,
    mask_ratio,
    mse,
    normalized,
    percentile_cutoffs,
    preserved,
    squared_difference,
    ssim,
)
from uncanny.eval.metrics.post_edit import (
    Points,
    PostEdit,
    SetShape,
    ShapeRule,
    _groups,
    edit_shape,
    post_edit,
    set_shape,
    shape_rule,
)

measure = pytest.importorskip("skimage.measure")
metrics = pytest.importorskip("skimage.metrics")
morphology = pytest.importorskip("skimage.morphology")

BLACK = np.zeros((256, 256, 3), dtype=np.uint8)


def squares(*boxes: tuple[int, int, int], side: int = 256) -> Pixels:
    """White squares, given as row, column and side, on black."""
    image = np.zeros((side, side, 3), dtype=np.uint8)
    for row, column, size in boxes:
        image[row : row + size, column : column + size] = 255
    return image


def measured(original: Pixels, edited: Pixels, **parameters: float | str) -> PostEdit:
    return post_edit(squared_difference(original, edited), **parameters)  # type: ignore[arg-type]


def test_one_square() -> None:
    edited = squares((100, 100, 40))
    edit = measured(BLACK, edited)
    assert mse(squared_difference(BLACK, edited)) == pytest.approx(0.024414, abs=5e-7)
    assert edit.ratio == pytest.approx(0.038147, abs=5e-7)
    assert ssim(BLACK, edited) == pytest.approx(0.969516, abs=5e-7)
    assert (len(edit.components), edit.clusters, edit.largest_centroid_distance) == (1, 1, 0)
    assert edit.largest_component_ratio == edit.ratio
    assert edit.components[0] == (2500, 119.5, 119.5)


def test_two_squares() -> None:
    edited = squares((50, 50, 20), (50, 120, 20))
    edit = measured(BLACK, edited)
    assert mse(squared_difference(BLACK, edited)) == pytest.approx(0.012207, abs=5e-7)
    assert edit.ratio == pytest.approx(0.027466, abs=5e-7)
    assert edit.largest_centroid_distance == 70
    assert ssim(BLACK, edited) == pytest.approx(0.981860, abs=5e-7)
    assert (len(edit.components), edit.clusters) == (2, 1)
    assert edit.largest_component_ratio == edit.ratio / 2
    assert measured(BLACK, edited, neighbours=70).clusters == 2, "70 is not nearer than 70"
    assert measured(BLACK, edited, neighbours=70.1).clusters == 1


def test_a_square_in_the_corner_is_dilated_into_the_image_alone() -> None:
    assert measured(BLACK, squares((0, 0, 20))).ratio == pytest.approx(0.009537, abs=5e-7)
    assert measured(BLACK, squares((236, 236, 20))).ratio == pytest.approx(0.009537, abs=5e-7)


def test_what_is_small_is_dropped_before_and_after_it_is_dilated() -> None:
    nine, ten = squares((50, 50, 3)), squares((50, 50, 3))
    ten[53, 53] = 255  # touches at a corner
    assert measured(BLACK, nine, least_component=1).components == ()
    assert measured(BLACK, ten, least_component=1).components[0].area == 13 * 13 + 11 * 11 - 10 * 10
    assert measured(BLACK, nine, least_object=9, least_component=169).components[0].area == 13 * 13
    assert measured(BLACK, nine, least_object=9, least_component=170).components == ()
    assert measured(BLACK, nine, least_object=9, dilation=1, least_component=9).ratio == 9 / 256**2


def test_areas_beyond_16_bits_are_counted() -> None:
    edit = measured(BLACK, 255 - BLACK)
    assert edit.components == ((65536, 127.5, 127.5),)
    assert (edit.ratio, edit.largest_component_ratio) == (1, 1)
    side = np.zeros((70, 1000, 3), dtype=np.uint8)
    assert measured(side, 255 - side).components[0].area == 70_000


def test_the_threshold_is_of_the_squared_difference() -> None:
    """A difference of 80 in all channels is (80/255)² = 0.098 of the most there is, 81 is 0.101."""
    grey = np.full((64, 64, 3), 80, dtype=np.uint8)
    assert not measured(np.zeros_like(grey), grey).mask.any()
    assert measured(np.zeros_like(grey), grey + 1).mask.all()
    assert measured(np.zeros_like(grey), grey, threshold=0.09).mask.all()


def test_no_change() -> None:
    edit = measured(BLACK, BLACK)
    assert (edit.ratio, edit.components, edit.clusters, edit.largest_centroid_distance) == (0, (), 0, 0)
    assert ssim(BLACK, BLACK) == 1
    assert mse(squared_difference(BLACK, BLACK)) == 0


def test_specks_by_the_paper_and_by_uncanny() -> None:
    """Specks of 9 pixels, 169 when dilated: uncanny drops them first, the paper merges those nearby."""
    one, near, far = squares((50, 50, 3)), squares((50, 50, 3), (50, 150, 3)), squares((9, 9, 3), (9, 240, 3))
    for edited in (one, near, far):
        assert measured(BLACK, edited).components == ()
        assert measured(BLACK, edited, protocol="release").components == ()
    alone = measured(BLACK, one, protocol="paper")
    assert (alone.components, alone.ratio) == (((169, 51, 51),), 0), "counted, and under 200 pixels"
    assert alone.largest_component_ratio == 169 / 65536
    merged = measured(BLACK, near, protocol="paper")
    assert (len(merged.components), merged.clusters, merged.largest_centroid_distance) == (2, 1, 100)
    assert merged.ratio == 2 * 169 / 65536 == mask_ratio(merged.mask)
    assert merged.largest_component_ratio == 169 / 65536
    apart = measured(BLACK, far, protocol="paper")
    assert (len(apart.components), apart.clusters, apart.largest_centroid_distance) == (2, 2, 231)
    assert apart.ratio == 0
    assert not apart.mask.any()
    assert measured(BLACK, far, protocol="paper", least_object=10).components == ()


def test_shapes() -> None:
    typical = set_shape([1, 1, 4], [1, 3, 8], [0.0, 10.0, 300.0])
    assert typical == SetShape(2, 4, 10)
    rule = shape_rule(typical, (400, 300))
    assert rule == ShapeRule(0.2, 2, 10)
    assert edit_shape(0.01, 1, 0, rule) == "localized"
    assert edit_shape(0.01, 4, 300, rule) == "diffused"
    assert edit_shape(0.01, 4, 10, rule) == "localized", "the distance has to exceed the median"
    assert edit_shape(0.01, 2, 300, rule) == "localized", "there have to be more clusters than the mean"
    assert edit_shape(0.2, 1, 0, rule) == "diffused"
    assert edit_shape(0.3, 1, 0, rule._replace(ratio=0.4)) == "localized"
    assert edit_shape(0, 0, 0, rule) is None
    alone = shape_rule(set_shape([], [], []), (400, 300))
    assert edit_shape(0.1, 9, 900, alone) == "localized", "without a set the ratio decides"


def test_shapes_by_the_paper_and_by_the_authors_program() -> None:
    """Of 400 × 300 pixels a quarter of the diagonal is 125."""
    typical = set_shape([1, 1, 4], [1, 3, 8], [0.0, 10.0, 300.0])
    paper = shape_rule(typical, (400, 300), protocol="paper")
    release = shape_rule(typical, (400, 300), protocol="release")
    assert (paper, release) == (ShapeRule(0.2, 4, 0), ShapeRule(0.2, 4, 125, at_ratio=False))
    assert edit_shape(0.2, 1, 0, paper) == "diffused"
    assert edit_shape(0.2, 1, 0, release) == "localized", "more than a fifth"
    assert edit_shape(0.21, 1, 0, release) == "diffused"
    for count, distance, by_paper, by_release in (
        (4, 300, "localized", "localized"),
        (5, 300, "diffused", "diffused"),
        (5, 125, "diffused", "localized"),
        (5, 126, "diffused", "diffused"),
        (5, 0, "localized", "localized"),
    ):
        assert edit_shape(0.01, count, distance, paper) == by_paper
        assert edit_shape(0.01, count, distance, release) == by_release


def test_similarities_of_0_to_1() -> None:
    assert [normalized(value) for value in (-1.0, 0.0, 0.5, 1.0)] == [0, 0.5, 0.75, 1]


def test_bins() -> None:
    cutoffs = percentile_cutoffs([0.0, 1.0, None, 2.0, 3.0, 4.0])
    assert cutoffs == (1, 3)
    values = (0.9, 1, 2, 3, 3.1)
    assert [bin_of(value, cutoffs) for value in values] == ["small", "medium", "medium", "medium", "large"]
    assert bin_of(None, cutoffs) is None
    assert bin_of(1.0, None) is None
    assert percentile_cutoffs([None]) is None
    assert percentile_cutoffs([0.0, 100.0], low=10, high=90) == (10, 90)


def test_bins_of_scenes_are_one_deviation_from_the_mean() -> None:
    cutoffs = deviation_cutoffs([2, 4, 4, 4, 5, 5, 7, 9])  # mean 5, deviation 2
    assert cutoffs == Cutoffs(3, 7)
    assert [bin_of(value, cutoffs) for value in (2, 3, 7, 8)] == ["small", "medium", "medium", "large"]
    assert deviation_cutoffs([None]) is None


def test_the_preserved_area() -> None:
    original, mask = np.full((64, 64, 3), 100, dtype=np.uint8), np.zeros((64, 64), dtype=np.bool_)
    mask[:, :32] = True
    edited = original.copy()
    edited[:, :32] = 255
    kept = preserved(original, edited, mask)
    assert kept is not None
    assert (kept.psnr, kept.mse, kept.mae, kept.ssim) == (math.inf, 0, 0, 1)
    edited[:, 32:] += 51  # a fifth of the range
    kept = preserved(original, edited, mask)
    assert kept is not None
    assert kept.mse == pytest.approx(0.04)
    assert kept.mae == pytest.approx(0.2)
    assert kept.psnr == pytest.approx(-10 * math.log10(0.04))
    assert preserved(original, edited, np.ones_like(mask)) is None
    sliver = np.ones_like(mask)
    sliver[:, :4] = False
    kept = preserved(original, edited, sliver)
    assert kept is not None
    assert kept.ssim is None, "no window of 5 lies outside the mask"


def test_errors_of_the_preserved_area_are_those_of_scikit_image(random: np.random.Generator) -> None:
    original, edited = noise(random), noise(random)
    mask = random.random(original.shape[:2]) < 0.3
    kept = preserved(original, edited, mask)
    assert kept is not None
    left = [image[~mask].astype(float) / 255 for image in (original, edited)]
    assert kept.mse == pytest.approx(metrics.mean_squared_error(*left))
    assert kept.psnr == pytest.approx(metrics.peak_signal_noise_ratio(*left, data_range=1))
    assert kept.mae == pytest.approx(np.abs(left[0] - left[1]).mean())


def test_ssim_outside_a_mask_is_the_mean_over_windows_without_it(random: np.random.Generator) -> None:
    original, edited = noise(random), noise(random)
    edited[:20] = original[:20]
    mask = np.zeros(original.shape[:2], dtype=np.bool_)
    mask[10:25, 30:50] = True
    _, full = metrics.structural_similarity(
        original, edited, win_size=5, channel_axis=2, data_range=255, full=True
    )
    outside = ~ndimage.binary_dilation(mask, np.ones((5, 5)))[2:-2, 2:-2]
    assert ssim(original, edited, mask=mask) == pytest.approx(full[2:-2, 2:-2][outside].mean(), abs=1e-6)


@pytest.mark.parametrize("window", [3, 5, 7, 11, 13])
def test_ssim_is_that_of_scikit_image(window: int, random: np.random.Generator) -> None:
    original = noise(random)
    for edited in (noise(random), _near(original, random), _partly(original, random)):
        wanted = metrics.structural_similarity(
            original, edited, win_size=window, channel_axis=2, data_range=255
        )
        assert ssim(original, edited, window=window) == pytest.approx(wanted, abs=1e-6)


def test_an_image_smaller_than_the_window_has_no_ssim() -> None:
    assert ssim(BLACK[:4], BLACK[:4]) is None
    assert ssim(BLACK[:5, :5], BLACK[:5, :5]) == 1


@given(
    arrays.arrays(np.uint8, (40, 52, 3), elements=st.sampled_from([0, 60, 255]), fill=st.just(0)),
    st.sampled_from([1, 3, 11]),
    st.sampled_from([0, 4, 30]),
)
@settings(max_examples=60, deadline=None)
def test_the_mask_is_that_of_scipy(edited: Pixels, dilation: int, least: int) -> None:
    """The same steps with library functions, each on the whole image."""
    original = np.zeros_like(edited)
    edit = measured(original, edited, least_object=4, dilation=dilation, least_component=least)
    changed = (edited.astype(float) ** 2).sum(axis=2) / (3 * 255**2) > 0.1
    objects = morphology.remove_small_objects(changed, max_size=3, connectivity=2)
    wide = ndimage.binary_dilation(objects, np.ones((dilation, dilation)))
    mask = morphology.remove_small_objects(wide, max_size=max(0, least - 1), connectivity=2)
    np.testing.assert_array_equal(edit.mask, mask)
    labels, number = ndimage.label(mask, np.ones((3, 3)))
    centres = np.array(ndimage.center_of_mass(mask, labels, range(1, number + 1))).reshape(-1, 2)
    assert len(edit.components) == number
    assert sum(component.area for component in edit.components) == mask.sum()
    assert edit.ratio == mask_ratio(mask)
    assert edit.largest_centroid_distance == pytest.approx(pdist(centres).max() if number > 1 else 0)


@given(
    arrays.arrays(np.uint8, (40, 52), elements=st.sampled_from([0, 60, 255]), fill=st.just(0)),
    st.sampled_from([1, 3, 5]),
    st.sampled_from([0, 4, 30]),
    st.sampled_from([4.0, 12.0, 60.0]),
)
@settings(max_examples=60, deadline=None)
def test_the_papers_mask_is_that_of_scikit_image_and_scipy(
    grey: NDArray[np.uint8], dilation: int, least: int, neighbours: float
) -> None:
    """Algorithm 2 step by step as printed, with other library functions."""
    edited = np.repeat(grey[..., None], 3, axis=2)
    edit = measured(
        np.zeros_like(edited),
        edited,
        protocol="paper",
        dilation=dilation,
        least_component=least,
        neighbours=neighbours,
    )
    wide = morphology.dilation(grey == 255, np.ones((dilation, dilation)))
    labels = measure.label(wide, connectivity=2)
    regions = measure.regionprops(labels)
    centroids = np.array([each.centroid for each in regions]).reshape(-1, 2)
    assert len(edit.components) == len(regions)
    assert sorted(each.area for each in edit.components) == sorted(int(each.area) for each in regions)
    distances = pdist(centroids)
    assert edit.largest_centroid_distance == pytest.approx(distances.max() if len(distances) else 0)
    assert edit.largest_component_ratio == max((each.area for each in regions), default=0) / grey.size
    merged = np.ones(len(regions), dtype=int)
    if len(regions) > 1:
        merged = fcluster(linkage(centroids), math.nextafter(neighbours, 0), "distance")
    assert edit.clusters == len(set(merged))
    kept = np.zeros_like(wide)
    for cluster in set(merged):
        together = np.isin(labels, np.flatnonzero(merged == cluster) + 1)
        if together.sum() >= least:
            kept |= together
    np.testing.assert_array_equal(edit.mask, kept)
    assert edit.ratio == kept.mean()


@pytest.mark.parametrize("kind", ["anywhere", "on a grid", "on a line", "twice"])
def test_clusters_of_many_points_are_those_of_single_linkage(kind: str) -> None:
    rng = np.random.default_rng(1)
    points = rng.uniform(0, 400, (1500, 2))
    match kind:
        case "on a grid":
            places = np.flatnonzero(rng.random(1600) < 0.7)
            points = 10.0 * np.stack(np.divmod(places, 40), axis=1)
        case "on a line":
            points[:, 1] = 2 * points[:, 0]
        case "twice":
            points[700:1400] = points[:700]
    assert len(points) > 1000
    for nearer in (0.5, 5.0, 10.0, 10.1, 14.2, 600.0):
        groups = fcluster(linkage(points), math.nextafter(nearer, 0), "distance")
        assert number_of_clusters(points, nearer) == len(set(groups))


@given(
    arrays.arrays(np.uint8, st.tuples(st.integers(1, 24), st.integers(1, 24), st.just(3))),
    st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None)
def test_what_holds_of_any_pair(original: Pixels, seed: int) -> None:
    edited = np.random.default_rng(seed).integers(0, 256, original.shape, dtype=np.uint8)
    one, other = squared_difference(original, edited), squared_difference(edited, original)
    np.testing.assert_array_equal(one, other)
    assert 0 <= mse(one) <= 1
    assert mse(one) == pytest.approx(((original / 255.0 - edited / 255.0) ** 2).mean())
    first, second = ssim(original, edited), ssim(edited, original)
    assert first == second
    assert first is None or -1 <= first <= 1
    edit = post_edit(one)
    assert 0 <= edit.largest_component_ratio <= edit.ratio <= 1
    assert edit.clusters <= len(edit.components)
    assert edit.ratio == mask_ratio(edit.mask)


def number_of_clusters(centroids: Points, nearer_than: float) -> int:
    return len(set(_groups(centroids, nearer_than).tolist()))


def test_clusters_are_linked_by_steps() -> None:
    chain = np.array([[0.0, 0], [0, 150], [0, 300], [0, 700]])
    assert number_of_clusters(chain, NEIGHBOURS) == 2
    assert number_of_clusters(chain, 150) == 4
    assert number_of_clusters(chain[:1], NEIGHBOURS) == 1
    assert number_of_clusters(chain[:0], NEIGHBOURS) == 0


def test_many_components() -> None:
    """Far apart on a grid and all on one line: distances and clusters as the points have them."""
    image = np.zeros((1000, 1000, 3), dtype=np.uint8)
    image[4::20, 4::20] = 255
    edit = measured(np.zeros_like(image), image, least_object=1, dilation=11, least_component=1)
    assert len(edit.components) == 2500
    assert edit.clusters == 1
    assert edit.largest_centroid_distance == pytest.approx(math.hypot(980, 980), abs=2)
    line = np.zeros((9, 30_000, 3), dtype=np.uint8)
    line[4, 4::20] = 255
    edit = measured(np.zeros_like(line), line, least_object=1, dilation=3, least_component=1)
    assert len(edit.components) == 1500
    assert edit.largest_centroid_distance == 20 * 1499
    assert edit.clusters == 1


@pytest.mark.parametrize(
    ("original", "edited"),
    [(BLACK, BLACK[:100]), (BLACK[..., :1], BLACK[..., :1]), (BLACK.astype(float), BLACK)],
)
def test_arrays_of_another_kind_are_refused(original: Pixels, edited: Pixels) -> None:
    with pytest.raises(ValueError, match="images must be"):
        squared_difference(original, edited)


def test_parameters_without_a_meaning_are_refused() -> None:
    with pytest.raises(ValueError, match="window must be odd"):
        ssim(BLACK, BLACK, window=4)
    with pytest.raises(ValueError, match="dilation must be odd"):
        measured(BLACK, BLACK, dilation=2)
    with pytest.raises(ValueError, match="the mask must be"):
        preserved(BLACK, BLACK, np.zeros((3, 3), dtype=np.bool_))


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(7)


def noise(random: np.random.Generator) -> Pixels:
    return random.integers(0, 256, (61, 83, 3), dtype=np.uint8)


def _near(original: Pixels, random: np.random.Generator) -> Pixels:
    apart = random.integers(-3, 4, original.shape)
    return np.clip(original.astype(int) + apart, 0, 255).astype(np.uint8)


def _partly(original: Pixels, random: np.random.Generator) -> Pixels:
    edited = original.copy()
    edited[20:40, 30:60] = noise(random)[20:40, 30:60]
    return edited


def test_an_empty_mask_covers_nothing() -> None:
    mask: Mask = np.zeros((4, 6), dtype=np.bool_)
    assert mask_ratio(mask) == 0
    mask[:2, :3] = True
    assert mask_ratio(mask) == 0.25
