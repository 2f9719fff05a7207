"""Tests of the commands that mend pictures: what they find missing, what they write, and how they refuse."""

import numpy as np
import pytest
import scipy.ndimage
import tifffile
from PIL import Image
from tests.cli.conftest import done, refused

import pointillist as pt
from pointillist.data import load_filters, photographs
from pointillist.storage import save_model

pytestmark = pytest.mark.usefixtures("no_leftovers")

FAST = ["--penalty", "0.03", "--jobs", "1"]


@pytest.fixture(scope="module")
def grey():
    """48×56 pixels of a photograph, uint8."""
    return np.round(255 * photographs("test")["camera"][100:148, 120:176]).astype(np.uint8)


@pytest.fixture(scope="module")
def colour():
    return np.round(255 * photographs("test", grey=False)["coffee"][100:148, 100:156]).astype(np.uint8)


@pytest.fixture(scope="module")
def missing(grey):
    return np.random.default_rng(0).random(grey.shape) < 0.3


@pytest.fixture
def filters(tmp_path):
    """A dictionary small enough for quick tests."""
    path = tmp_path / "few.safetensors"
    save_model(path, load_filters("natural-100")[:12], {})
    return ["--filters", path]


def _save(path, pixels, **options):
    Image.fromarray(pixels).save(path, **options)
    return path


def _marked(grey, missing, key=(255, 0, 255)):
    return np.where(missing[..., None], np.array(key, np.uint8), grey[..., None]).astype(np.uint8)


def _error(picture, reference):
    return np.sqrt(np.mean((picture.astype(float) - reference.astype(float)) ** 2))


@pytest.mark.parametrize("key", [(255, 0, 255), (0, 255, 0), (255, 0, 0)])
def test_inpaint_finds_marked_pixels_by_itself(cli, tmp_path, grey, missing, filters, key):
    photo = _save(tmp_path / "photo.png", _marked(grey, missing, key))
    answer = done(cli("inpaint", photo, *filters, *FAST))
    assert "#" + bytes(key).hex() in answer.out
    written = np.asarray(Image.open(tmp_path / "photo-inpainted.png"))
    assert (written.shape, written.dtype) == ((*grey.shape, 3), np.uint8)  # colour, as the file was
    assert np.all(written == written[..., :1])  # grey, as all but its marks was
    mended = written[..., 0]
    np.testing.assert_array_equal(mended[~missing], grey[~missing])
    assert _error(mended[missing], grey[missing]) < 0.5 * np.std(grey)


def test_inpaint_takes_transparent_pixels_before_colours(cli, tmp_path, grey, colour, missing, filters):
    opaque = np.where(missing, 0, 255).astype(np.uint8)
    picture = colour.copy()
    picture[:4, :4] = (255, 0, 255)
    photo = _save(tmp_path / "photo.png", np.dstack([picture, opaque]))
    answer = done(cli("inpaint", photo, "-o", tmp_path / "out.png", *filters, *FAST))
    assert "transparent" in answer.out
    mended = np.asarray(Image.open(tmp_path / "out.png"))
    assert mended.shape == (*grey.shape, 4)
    assert mended[..., 3].min() == 255  # opaque where it was filled in
    np.testing.assert_array_equal(mended[~missing, :3], picture[~missing])


def test_inpaint_by_mask_and_by_key_agree(cli, tmp_path, grey, missing, filters):
    mask = _save(tmp_path / "mask.png", np.where(missing, 255, 0).astype(np.uint8))
    dark = _save(tmp_path / "dark.png", np.where(missing, 0, np.maximum(grey, 1)).astype(np.uint8))
    reference = _save(tmp_path / "reference.png", grey)
    options = [*filters, *FAST, "--reference", reference]
    masked = cli("inpaint", dark, "-o", tmp_path / "a.png", "--mask", mask, "--compare", tmp_path / "c.png", *options)
    exact = ["--key", "black", "--tolerance", "0", "--no-fringe"]
    keyed = cli("inpaint", dark, "-o", tmp_path / "b.png", *exact, *options)
    assert (masked.code, keyed.code) == (0, 0), masked.err + keyed.err
    np.testing.assert_array_equal(Image.open(tmp_path / "a.png"), Image.open(tmp_path / "b.png"))
    assert "PSNR before" in masked.out
    before, after = (float(word) for word in masked.out.splitlines()[1].replace("dB", "").split()[-3:-1])
    assert after > before + 5
    assert Image.open(tmp_path / "c.png").width > 3 * grey.shape[1]


def test_nan_in_float_files_is_missing(cli, tmp_path, grey, missing, filters):
    picture = np.where(missing, np.nan, grey / 255).astype(np.float32)
    np.save(tmp_path / "a.npy", picture)
    tifffile.imwrite(tmp_path / "b.tif", picture)
    done(cli("inpaint", tmp_path / "a.npy", tmp_path / "b.tif", *filters, *FAST))
    mended = np.load(tmp_path / "a-inpainted.npy")
    assert mended.dtype == np.float32
    assert np.isfinite(mended).all()
    np.testing.assert_allclose(tifffile.imread(tmp_path / "b-inpainted.tif"), mended, atol=1e-6)


def test_folders_keep_names_types_and_order(cli, tmp_path, grey, missing, filters):
    folder = tmp_path / "in"
    folder.mkdir()
    _save(folder / "one.png", _marked(grey, missing))
    tifffile.imwrite(folder / "two.tif", _marked(grey, missing).astype(np.uint16) * 257, photometric="rgb")
    (folder / "broken.png").write_bytes(b"no picture")
    refused(cli("inpaint", folder, "-o", tmp_path / "out", *filters, *FAST, "-q"), "broken.png")
    answer = done(cli("inpaint", folder, "-o", tmp_path / "out", *filters, *FAST, "--on-error", "skip"))
    assert "skipped" in answer.err
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["one.png", "two.tif"]
    deep = tifffile.imread(tmp_path / "out" / "two.tif")
    assert deep.dtype == np.uint16
    np.testing.assert_array_equal(deep[~missing], grey[~missing, None].astype(np.uint16).repeat(3, axis=1) * 257)


def test_quiet_says_nothing(cli, tmp_path, grey, missing, filters):
    photo = _save(tmp_path / "photo.png", _marked(grey, missing))
    answer = cli("inpaint", photo, *filters, *FAST, "-q")
    assert (answer.code, answer.out, answer.err) == (0, "", "")


def test_denoise_lowers_the_error(cli, tmp_path, grey, filters):
    noisy = np.clip(grey + 25 * np.random.default_rng(0).standard_normal(grey.shape), 0, 255).astype(np.uint8)
    photo = _save(tmp_path / "photo.png", noisy)
    done(cli("denoise", photo, "--sigma", "25", *filters, "--jobs", "1"))
    assert _error(np.asarray(Image.open(tmp_path / "photo-denoised.png")), grey) < 0.8 * _error(noisy, grey)


@pytest.mark.parametrize("noise", ["salt_pepper", "outliers", "poisson"])
def test_denoise_knows_kinds_of_noise(cli, tmp_path, grey, filters, noise):
    rng, rate = np.random.default_rng(1), np.clip(0.2 * grey, 1, 254)
    noisy = np.where(rng.random(grey.shape) < 0.05, np.where(rng.random(grey.shape) < 0.5, 0, 255), rate)
    if noise == "poisson":
        noisy = rng.poisson(rate)
    np.save(tmp_path / "photo.npy", noisy.astype(np.float32))
    answer = done(cli("denoise", tmp_path / "photo.npy", "--noise", noise, *filters, "--jobs", "1"))
    assert noise.replace("_", " and ") in answer.out
    assert _error(np.load(tmp_path / "photo-denoised.npy"), rate) < 0.8 * _error(noisy, rate)


def test_demosaic_gives_colour(cli, tmp_path, colour):
    mosaic = colour[..., 1].copy()
    mosaic[::2, ::2], mosaic[1::2, 1::2] = colour[::2, ::2, 2], colour[1::2, 1::2, 0]
    reference = _save(tmp_path / "reference.png", colour)
    photo = _save(tmp_path / "photo.png", mosaic)
    done(cli("demosaic", photo, "--pattern", "BGGR", "--reference", reference, "--jobs", "1"))
    mended = np.asarray(Image.open(tmp_path / "photo-coloured.png"))
    assert mended.shape == colour.shape
    assert _error(mended, colour) < 0.5 * _error(np.stack([mosaic] * 3, axis=-1), colour)
    np.testing.assert_array_equal(mended[::2, 1::2, 1], colour[::2, 1::2, 1])


def test_deblur_by_name_and_by_file_agree(cli, tmp_path, grey, filters):
    photo = _save(tmp_path / "photo.png", scipy.ndimage.convolve(grey, pt.gaussian_kernel(1.2)))
    np.save(tmp_path / "psf.npy", pt.gaussian_kernel(1.2))
    first = cli("deblur", photo, "-o", tmp_path / "a.png", "--gaussian", "1.2", *filters, *FAST)
    second = cli("deblur", photo, "-o", tmp_path / "b.png", "--psf", tmp_path / "psf.npy", *filters, *FAST)
    assert (first.code, second.code) == (0, 0), first.err + second.err
    np.testing.assert_array_equal(Image.open(tmp_path / "a.png"), Image.open(tmp_path / "b.png"))


@pytest.mark.parametrize("command", ["denoise", "super-resolve"])
def test_alpha_is_carried_through(cli, tmp_path, colour, filters, command):
    opacity = np.arange(colour.shape[0] * colour.shape[1], dtype=np.uint32).reshape(colour.shape[:2]).astype(np.uint8)
    photo = _save(tmp_path / "photo.png", np.dstack([colour, opacity]))
    answer = done(cli(command, photo, "-o", tmp_path / "out.png", *filters, *FAST))
    assert answer.err == ""
    written = np.asarray(Image.open(tmp_path / "out.png"))
    factor = 2 if command == "super-resolve" else 1
    np.testing.assert_array_equal(written[..., 3], opacity.repeat(factor, 0).repeat(factor, 1))


def test_what_is_not_kept_is_said(cli, tmp_path, colour, filters):
    photo = _save(tmp_path / "photo.png", np.dstack([colour, np.full(colour.shape[:2], 128, np.uint8)]))
    answer = done(cli("denoise", photo, "-o", tmp_path / "out.jpg", *filters, *FAST))
    assert "out.jpg: JPEG cannot hold transparency: left out" in answer.err
    assert np.asarray(Image.open(tmp_path / "out.jpg")).shape == colour.shape


def test_inpaint_says_what_to_give_when_nothing_is_marked(cli, tmp_path, grey, colour):
    refused(cli("inpaint", _save(tmp_path / "a.png", grey)), "a.png", "--mask", "--key", "transparent")
    refused(cli("inpaint", _save(tmp_path / "b.jpg", colour)), "b.jpg", "--mask")
    two = colour.copy()
    two[:5], two[-5:] = (255, 0, 0), (0, 255, 0)
    refused(cli("inpaint", _save(tmp_path / "c.png", two)), "c.png", "#00ff00", "#ff0000", "--key")


def test_fringes_are_taken_unless_they_shall_stay(cli, filters, grey, tmp_path):
    missing = np.zeros(grey.shape, bool)
    missing[10:40, 20:24] = True
    pixels = _marked(grey, missing)
    pixels[10:40, 24] = np.round(0.6 * np.array([255, 0, 255]) + 0.4 * pixels[10:40, 24])  # an edge half as magenta
    photo = _save(tmp_path / "photo.png", pixels)
    for options, near in (([], True), (["--grow", "1", "--no-fringe"], True), (["--no-fringe"], False)):
        done(cli("inpaint", photo, *FAST, *filters, *options, "--overwrite", "--save-mask", tmp_path / "m.png"))
        saved = np.asarray(Image.open(tmp_path / "m.png"))
        assert set(np.unique(saved)) == {0, 255}
        assert np.all(saved[missing] == 255)
        assert bool(np.all(saved[10:40, 24] == 255)) is near
    refused(cli("inpaint", photo, *FAST, "--grow", "100", "--overwrite"), "no pixel is left to fill in from")
    refused(cli("inpaint", photo, *FAST, "--overwrite", "--save-mask", photo), "photo.png")


def test_dust_is_found_and_mended(cli, tmp_path):
    rows, columns = np.mgrid[:120, :160]
    sky = np.stack([150 + rows // 4, 180 + columns // 8, 200 + rows // 8], axis=-1).astype(np.uint8)
    dusty = sky.copy()
    dusty[40:44, 50:54] = dusty[80:83, 120:124] = 20
    photo = _save(tmp_path / "photo.png", dusty)
    said = done(cli("inpaint", photo, "--find", "dust", "--save-mask", tmp_path / "mask.png"))
    assert "missing (dust)" in said.out
    assert np.max(np.abs(np.asarray(Image.open(tmp_path / "photo-inpainted.png")).astype(int) - sky)) <= 3
    clean = _save(tmp_path / "clean.png", sky)
    said = cli("inpaint", clean, "--find", "dust")
    assert "no dust found" in said.err
    np.testing.assert_array_equal(Image.open(tmp_path / "clean-inpainted.png"), sky)


def test_a_wrong_blur_is_refused_and_may_be_forced(cli, tmp_path, grey, filters):
    photo = _save(tmp_path / "photo.png", grey)
    refused(
        cli("deblur", photo, "--gaussian", "4", *filters, *FAST), "does not seem to be this picture's own", "--estimate"
    )
    assert not (tmp_path / "photo-deblurred.png").exists()
    assert cli("deblur", photo, "--gaussian", "1.5", "--force", *filters, *FAST).code == 0


def test_a_blur_is_estimated(cli, tmp_path):
    truth = pt.photographs("test")["coffee"]
    blurred = scipy.ndimage.convolve(truth, pt.gaussian_kernel(2.0))
    blurred += 0.005 * np.random.default_rng(0).standard_normal(truth.shape)
    photo = _save(tmp_path / "photo.png", np.clip(np.rint(255 * blurred), 0, 255).astype(np.uint8))
    said = done(cli("deblur", photo, "--estimate", "gaussian", "--crop", "100,100,96,96"))
    assert "gaussian blur (--gaussian 2." in said.out or "gaussian blur (--gaussian 1.9" in said.out
