"""Metrics as pure functions over numbers: no files, no models.

Here are the constants that commands show as defaults, and that must not take long to import.
"""

from typing import Final, Literal, get_args

# Bootstrap resamples for an interval, unless the user says otherwise.
RESAMPLES = 10_000
# Of the published tables of AnomReason: from which similarity on a match counts, and λ.
THRESHOLDS = (0.7, 0.8, 0.9)
BALANCE = 0.5

# Artifacts: how instances are matched, the share of a predicted region that must lie in a true one, the share
# of an image that is artifact, and the value from which a pixel of a heat map is.
RegionProtocol = Literal["paper", "release"]
TOLERANCE: Final = 0.5
PAR: Final = "par"
HEAT_MAP_THRESHOLD: Final = 0.5

# Measuring edits (`edits`, `post_edit`), Semi-Truths, section 3.1; lengths and areas in pixels.
EditProtocol = Literal["uncanny", "paper", "release"]
EDIT_PROTOCOLS: Final[tuple[EditProtocol, ...]] = get_args(EditProtocol)
PROTOCOL: Final[EditProtocol] = "uncanny"
WINDOW: Final = 5
DIFFERENCE: Final = 0.1
# The paper drops nothing before it dilates.
LEAST_OBJECT: Final[dict[EditProtocol, int]] = {"uncanny": 10, "paper": 0, "release": 10}
DILATION: Final = 11
LEAST_COMPONENT: Final = 200
NEIGHBOURS: Final = 200.0
DIFFUSED_RATIO: Final = 0.2
LOW_PERCENTILE, HIGH_PERCENTILE = 25.0, 75.0
DEVIATIONS: Final = 1.0
# Of SAGI, supplementary, section 3.3: people with fewer answers to a questionnaire are left out.
LEAST_ANSWERS: Final = 20
# Share of attention checks that raters must pass; Semi-Truths had such checks, and does not say how many.
LEAST_PASSED: Final = 0.75
