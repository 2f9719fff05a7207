"""What is passed to a restoration function is used, or refused: a walk over all pairs of a mode and an argument.

`TABLE` says for every public function and each of its arguments another value than usual, and which modes do not use the
argument. There a ValueError names it; everywhere else the answer must be another one. An argument without an entry fails.
"""

import inspect
from dataclasses import dataclass, field, fields

import numpy as np
import pytest
from PIL import Image, ImageDraw

import pointillist as pt

RNG = np.random.default_rng(0)
FILTERS, OTHERS = RNG.standard_normal((2, 6, 5, 5)) / 5
COLOURED, OTHERS_COLOURED = RNG.standard_normal((2, 6, 3, 5, 5)) / 9
WAVES = 0.5 + 0.3 * np.sin(np.arange(48) / 3) * np.cos(np.arange(40) / 4)[:, None]
COLOUR = np.clip(np.stack([WAVES, 0.9 * WAVES, 0.7 * WAVES[::-1]], -1) + 0.03 * RNG.standard_normal((40, 48, 3)), 0, 1)
MASK, OTHER_MASK = np.zeros((2, 40, 48), bool)
MASK[16:22, 18:26] = OTHER_MASK[5:9] = True
SPECKLED = 200 * COLOUR + 20
SPECKLED[RNG.random((40, 48)) < 0.25] = 0
LARGE = np.kron(RNG.random((12, 12)), np.ones((8, 8))) + 0.05 * RNG.standard_normal((96, 96))
DUSTY = np.tile(np.linspace(0.3, 0.6, 96), (96, 1))
DUSTY[40:44, 50:54], DUSTY[70:74, 20:24], DUSTY[10, 10:80] = 0.95, 0.02, 0.9
DUSTY[20:22, 30:32], DUSTY[85, 5:60] = 0.66, 0.5
SCRATCHED = np.tile(np.linspace(0.3, 0.6, 160), (128, 1))
SCRATCHED[60:63, 20:140], SCRATCHED[100:102, 30:120] = 0.9, 0.35
_SHEET = Image.new("L", (160, 96))
ImageDraw.Draw(_SHEET).multiline_text((8, 8), "Noon 1987\n\nABC", fill=255, font_size=20)
WRITTEN = 0.3 + 0.001 * np.arange(160) + 0.5 * np.asarray(_SHEET) / 255
MARKED = np.full((40, 40, 3), 90, np.uint8)
MARKED[10:14, 4:28], MARKED[14, 4:28], MARKED[30:34, 4:28] = (255, 0, 255), (172, 45, 172), (0, 255, 0)


@dataclass
class Walk:
    """How to walk over the pairs of a function.

    mode: the argument that is its mode; modes: what is always passed, for each mode; others: another value for every
    argument; unused: arguments that are refused, for each mode; beside: what an argument needs beside it to matter.
    """

    mode: str | None
    modes: dict
    others: dict
    unused: dict = field(default_factory=dict)
    beside: dict = field(default_factory=dict)


SHARED = {
    "debias": True, "tol": 1e-5, "n_jobs": 1, "device": "nowhere", "return_details": False, "channel_axis": 0,
    "data_range": 4.0, "progress": None,
}  # fmt: skip
ONLY_PROMPT = {"n_jobs", "progress"}  # these change when the answer comes, not the answer
DETAILED = {"filters": FILTERS, "return_details": True}
SPECKLE = {"image": SPECKLED, "penalty": 0.01, **DETAILED}
CODED = {"image": COLOUR, "mask": MASK, "penalty": 0.01, **DETAILED}

TABLE = {
    "inpaint": Walk(
        "method",
        {"auto": CODED, "neighbours": {"image": COLOUR, "mask": MASK, "return_details": True}, "codes": CODED},
        {
            **SHARED, "image": COLOUR[::-1], "mask": OTHER_MASK, "filters": OTHERS, "penalty": "30%", "texture": 1.0,
            "keep_seen": False, "deviations": True, "boundary": "full", "data_range": float(COLOUR[~MASK].max()),
        },
        {
            "auto": {"keep_seen"},
            "neighbours": {"keep_seen", "filters", "penalty", "debias", "boundary", "tol", "device"},
            "codes": {"texture", "deviations"},
        },
    ),
    "denoise": Walk(
        "noise",
        {name: SPECKLE for name in ("gaussian", "salt_pepper", "outliers", "poisson")},
        {
            **SHARED, "image": SPECKLED[::-1], "sigma": 30.0, "filters": OTHERS, "penalty": 0.3, "gain": 3.0,
            "boundary": "full", "data_range": 4000.0,
        },
        {
            "gaussian": {"gain"}, "salt_pepper": {"sigma", "gain"}, "outliers": {"sigma", "gain"},
            "poisson": {"sigma", "data_range"},
        },
    ),
    "deblur": Walk(
        None,
        {None: {"image": COLOUR, "psf": pt.gaussian_kernel(0.5), **DETAILED}},
        {
            **SHARED, "image": COLOUR[::-1], "psf": np.ones((3, 3)), "filters": OTHERS, "penalty": 0.1, "sigma": 0.2,
            "force": True, "boundary": "same",
        },
        beside={"force": {"psf": pt.gaussian_kernel(3.0), "sigma": 0.002}, "debias": {"sigma": 0.002}},
    ),
    "super_resolve": Walk(
        None,
        {None: {"image": COLOUR, **DETAILED}},
        {
            **SHARED, "image": COLOUR[::-1], "factor": 3, "filters": OTHERS, "penalty": 0.1, "kernel": "bicubic",
            "boundary": "same",
        },
    ),
    "demosaic": Walk(
        None,
        {None: {"mosaic": COLOUR[..., 1], "filters": COLOURED, "return_details": True}},
        {
            **{name: value for name, value in SHARED.items() if name != "channel_axis"}, "mosaic": COLOUR[..., 2],
            "pattern": "GBRG", "filters": OTHERS_COLOURED, "penalty": 0.1, "keep_seen": False, "boundary": "full",
        },
    ),
    "estimate_blur": Walk(
        "kind",
        {"motion": {"image": LARGE}, "gaussian": {"image": LARGE}},
        {"image": LARGE[::2, ::2].repeat(2, 0).repeat(2, 1), "sigma": 0.3, "channel_axis": -1, "data_range": 300.0},
    ),
    "estimate_sigma": Walk(
        None, {None: {"image": LARGE}}, {"image": LARGE[:50], "mask": LARGE > 0.4, "channel_axis": -1}
    ),
    "find_damage": Walk(
        "kind",
        {"dust": {"image": DUSTY}, "scratches": {"image": SCRATCHED}, "text": {"image": WRITTEN}},
        {
            "image": DUSTY[:, ::-1], "polarity": "dark", "sensitivity": 1.0, "grow": 3, "data_range": 9.0, "n_jobs": 1,
            "progress": None,
        },
    ),
    "find_marks": Walk(
        None,
        {None: {"image": MARKED, "colour": "magenta"}},
        {"image": MARKED[:, ::-1], "colour": "lime", "tolerance": 0.5, "fringe": False, "grow": 2},
    ),
}  # fmt: skip
PAIRS = [
    (name, mode, argument)
    for name, walk in TABLE.items()
    for mode in walk.modes
    for argument in inspect.signature(getattr(pt, name)).parameters
    if argument != walk.mode
]


def test_every_function_has_its_place():
    called = {name: getattr(pt, name) for name in pt.__all__ if inspect.isfunction(getattr(pt, name))}
    found = {name for name in called if name.startswith(("estimate_", "find_"))}
    tasks = {
        name for name, one in called.items() if {"penalty", "return_details"} <= {*inspect.signature(one).parameters}
    }
    assert set(TABLE) == found | tasks


@pytest.mark.parametrize("name", TABLE)
def test_every_argument_and_every_mode_has_its_place(name):
    walk, parameters = TABLE[name], inspect.signature(getattr(pt, name)).parameters
    assert all(one.kind is not one.VAR_KEYWORD for one in parameters.values())
    assert set(parameters) == {*walk.others, *([walk.mode] if walk.mode else [])}
    assert set().union(*walk.unused.values(), set()) <= set(walk.others)


def _told(answer):
    """An answer and what its details say, as something to be compared; without the time it took."""
    if isinstance(answer, tuple):
        return _told(answer[0]) + _told(answer[1])
    if isinstance(answer, np.ndarray):
        return [answer.dtype, answer.shape, answer.tobytes()]
    if isinstance(answer, (pt.Details, pt.BlurEstimate)):
        names = [field.name for field in fields(answer) if field.name not in ("seconds", "codes")]
        return [part for name in names for part in _told(getattr(answer, name))]
    return [repr(answer)]


def _call(name, mode, **changed):
    walk = TABLE[name]
    arguments = {**walk.modes[mode], **({walk.mode: mode} if walk.mode else {}), **changed}
    return _told(getattr(pt, name)(**arguments))


@pytest.fixture(scope="module")
def usual():
    found = {}

    def answer(name, mode, **beside):
        key = name, mode, *beside
        if key not in found:
            found[key] = _call(name, mode, **beside)
        return found[key]

    return answer


@pytest.mark.filterwarnings("ignore::pointillist.BlurMisfitWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("name", "mode", "argument"), PAIRS, ids=str)
def test_an_argument_is_used_or_refused(name, mode, argument, usual):
    walk, told = TABLE[name], []
    value = told.append if argument == "progress" else walk.others[argument]
    if argument in walk.unused.get(mode, ()):
        with pytest.raises(
            ValueError, match=f"^{argument} is not used with {walk.mode}=.{mode}.: leave it out, or give"
        ):
            _call(name, mode, **{argument: value})
        return
    if argument in ("device", "channel_axis"):
        with pytest.raises(ValueError, match=argument):
            _call(name, mode, **{argument: value})
        return
    beside = walk.beside.get(argument, {})
    answer = _call(name, mode, **beside, **{argument: value})
    assert (answer == usual(name, mode, **beside)) == (argument in ONLY_PROMPT)
    assert bool(told) == (argument == "progress")


def test_the_two_that_go_together():
    with pytest.raises(ValueError, match="return_details"):
        pt.inpaint(COLOUR, MASK, deviations=True)
    torn = np.random.default_rng(1).random(COLOUR.shape) < 0.2
    for more in ({"texture": 0.5}, {"deviations": True, "return_details": True}):
        with pytest.raises(ValueError, match=r"grey filters.*texture and deviations"):
            pt.inpaint(COLOUR, torn, COLOURED, **more)
