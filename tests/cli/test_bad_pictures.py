"""The bad-input matrix of the commands that mend pictures: a clear line and an exit code, or the right file."""

import numpy as np
import pytest
import tifffile
from PIL import Image
from tests.cli.conftest import done, refused

from pointillist.data import load_filters, photographs
from pointillist.storage import save_model

pytestmark = pytest.mark.usefixtures("no_leftovers")

SHAPE = (36, 40)
COMMANDS = {
    "inpaint": ["--mask", "mask.png"],
    "denoise": [],
    "deblur": ["--gaussian", "1", "--force"],
    "super-resolve": [],
    "demosaic": [],
}


@pytest.fixture(params=COMMANDS)
def command(request):
    return request.param


@pytest.fixture(scope="module")
def grey():
    return np.round(255 * photographs("test")["camera"][100:136, 120:160]).astype(np.uint8)


@pytest.fixture
def mend(cli, tmp_path, monkeypatch):
    """Run a command on files of a folder that also holds a mask and small dictionaries."""
    monkeypatch.chdir(tmp_path)
    holes = np.random.default_rng(0).random(SHAPE) < 0.3
    Image.fromarray(np.where(holes, 255, 0).astype(np.uint8)).save("mask.png")
    save_model("grey.safetensors", load_filters("natural-100")[:6], {})
    save_model("colour.safetensors", load_filters("natural-colour-100")[:6], {})

    def run(command, *arguments, plain=False):
        filters = "colour.safetensors" if command == "demosaic" else "grey.safetensors"
        needed = [] if plain else COMMANDS[command]
        return cli(command, "--filters", filters, "--penalty", "0.05", "--jobs", "1", *needed, *arguments)

    return run


def _bad_files(folder, grey):
    (folder / "empty.png").write_bytes(b"")
    (folder / "text.png").write_text("no picture")
    Image.fromarray(grey).save(folder / "whole.png")
    (folder / "cut.png").write_bytes((folder / "whole.png").read_bytes()[:300])
    (folder / "cut.tif").write_bytes(b"II*\0\x08\0\0\0")
    (folder / "text.npy").write_text("no array")
    Image.fromarray(grey[:1, :1]).save(folder / "pixel.png")
    Image.fromarray(grey[:3]).save(folder / "strip.png")
    np.save(folder / "nothing.npy", np.zeros((0, 40)))
    np.save(folder / "complex.npy", grey.astype(complex))
    np.save(folder / "volume.npy", np.zeros((3, 4, 36, 40)))
    np.save(folder / "object.npy", np.array([None, 1]), allow_pickle=True)
    np.save(folder / "infinite.npy", np.full(SHAPE, np.inf))


BAD = [
    "empty.png", "text.png", "cut.png", "cut.tif", "text.npy", "pixel.png", "strip.png", "nothing.npy", "complex.npy",
]  # fmt: skip
BAD += ["volume.npy", "object.npy", "infinite.npy", "absent.png"]


@pytest.mark.parametrize("name", BAD)
def test_files_that_cannot_be_mended(mend, tmp_path, grey, command, name):
    _bad_files(tmp_path, grey)
    refused(mend(command, name), name)


def test_a_file_that_may_not_be_read(mend, tmp_path, grey, command, monkeypatch):
    Image.fromarray(grey).save(tmp_path / "locked.png")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", "locked.png")

    monkeypatch.setattr("pointillist.read_photograph", refuse)
    refused(mend(command, "locked.png"), "locked.png", "Permission denied")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--filters", "natural-7"], ["natural-7", "natural-100"]), (["--filters", "mask.png"], ["mask.png"]),
        (["--penalty", "-1"], ["penalty", "positive"]), (["--penalty", "5 percent"], ["--penalty", "5%"]),
        (["--jobs", "0"], ["--jobs"]), (["-o", "picture.xyz"], [".xyz", ".png"]),
        (["-o", "absent/picture.png"], ["absent"]), (["--reference", "absent.png"], ["absent.png"]),
        (["--sharpness", "5"], ["--sharpness"]),
    ],
    ids=lambda value: " ".join(value),
)  # fmt: skip
def test_options_out_of_range(mend, tmp_path, grey, command, options, words):
    Image.fromarray(grey).save(tmp_path / "photo.png")
    refused(mend(command, "photo.png", *options), *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("denoise photo.png --sigma -1", "--sigma positive"),
        ("denoise photo.png --noise brown", "--noise outliers"),
        ("denoise photo.png --noise poisson --sigma 3", "--sigma Gaussian"),
        ("denoise photo.png --noise poisson --gain 0", "--gain positive"),
        ("denoise photo.png --gain 2", "--gain poisson"),
        ("inpaint photo.png --mask mask.png --sensitivity 0.7", "--sensitivity --find"),
        ("inpaint photo.png --mask mask.png --no-fringe", "--no-fringe --mask"),
        ("inpaint photo.png --find dust --tolerance 5%", "--tolerance --find"),
        ("inpaint photo.png --tolerance much", "--tolerance percentage"),
        ("inpaint photo.png --key pink", "--key pink"),
        ("inpaint photo.png --key #0a7f33", "--key #0a7f33"),
        ("inpaint photo.png --mask mask.png --key #ff00ff", "one --mask, --key --find"),
        ("inpaint photo.png --find stains", "--find dust"),
        ("inpaint photo.png --mask mask.png --texture 2", "--texture"),
        ("inpaint photo.png --mask mask.png --method neighbours", "neighbours filters"),
        ("inpaint photo.png --mask mask.png -o photo.png", "photo.png input"),
        ("inpaint photo.png mask.png --mask mask.png -o mask.png", "mask.png folder"),
        ("deblur photo.png --estimate disk", "--estimate motion"),
        ("demosaic photo.png --pattern RGB", "--pattern RGGB"),
        ("super-resolve photo.png --factor 1", "--factor"),
        ("deblur photo.png --psf high.png", "psf larger"),
        ("deblur photo.png --psf black.png", "black.png zero"),
        ("deblur photo.png --psf absent.png", "absent.png"),
        ("deblur photo.png --gaussian -1", "--gaussian positive"),
        ("deblur photo.png --gaussian 1 --sigma -2", "--sigma positive"),
        ("deblur photo.png --motion 9", "--motion 9,30"),
        ("deblur photo.png", "--psf --gaussian --motion"),
        ("inpaint photo.png --mask small.png", "small.png photo.png agree"),
        ("inpaint photo.png --mask all.png", "photo.png missing"),
        ("inpaint photo.png --mask absent.png", "absent.png"),
        ("inpaint photo.png --key #zz0000", "colour #zz0000"),
    ],
)
def test_options_of_one_command(mend, tmp_path, grey, words, said):
    white = np.full((90, 40), 255, np.uint8)
    for name, pixels in {
        "photo": grey, "high": white[:, :3], "black": 0 * white[:3, :3], "small": grey[:5, :5], "all": white[: len(grey)],
    }.items():  # fmt: skip
        Image.fromarray(pixels).save(tmp_path / f"{name}.png")
    command, *rest = words.split()
    refused(mend(command, *rest, plain=True), *said.split())


def test_nothing_missing_gives_the_picture_back(mend, tmp_path, grey):
    Image.fromarray(grey).save(tmp_path / "photo.png")
    Image.fromarray(np.zeros(SHAPE, np.uint8)).save(tmp_path / "none.png")
    answer = done(mend("inpaint", "photo.png", "--mask", "none.png", plain=True))
    assert "photo.png: --mask none.png marks nothing, the picture stays as it is" in answer.err
    np.testing.assert_array_equal(Image.open(tmp_path / "photo-inpainted.png"), grey)


ODD = {"alpha.png": "uint8", "palette.png": "uint8", "cmyk.jpg": "uint8", "stack.tif": "uint16", "float.npy": "float64"}
"""Files of kinds that people have, and the type of their samples."""
COLOURED = {"alpha.png", "cmyk.jpg", "palette.png"}


@pytest.mark.parametrize("name", ODD)
def test_files_of_every_kind(mend, grey, command, name):
    colour = Image.fromarray(np.stack([grey, 255 - grey, grey // 2], axis=-1))
    Image.fromarray(np.dstack([colour, grey])).save("alpha.png")
    colour.convert("P").save("palette.png")
    colour.convert("CMYK").save("cmyk.jpg")
    tifffile.imwrite("stack.tif", np.stack([grey] * 3).astype(np.uint16) * 257, photometric="minisblack")
    np.save("float.npy", (grey / 255).astype(np.float64))
    answer = mend(command, name, "-o", f"answer{'.png' if name == 'cmyk.jpg' else name[-4:]}")
    if command == "demosaic" and name in COLOURED:
        refused(answer, name, "colour")
        return
    assert answer.code == 0, answer.err
    assert ("only the first of its" in answer.err) is (name == "stack.tif")
    read = {".npy": np.load, ".tif": tifffile.imread}.get(name[-4:], lambda path: np.asarray(Image.open(path)))
    picture = read("answer.png" if name == "cmyk.jpg" else f"answer{name[-4:]}")
    assert picture.dtype == ODD[name]
    size = tuple((2 if command == "super-resolve" else 1) * n for n in SHAPE)
    channels = (3 if name in COLOURED or command == "demosaic" else 1) + ("alpha" in name)
    assert picture.shape == (size if channels == 1 else (*size, channels))
