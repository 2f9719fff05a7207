"""Files of the commands that mend pictures: what survives, what they are called, and what is never overwritten."""

import os
import signal

import numpy as np
import pytest
from PIL import Image, ImageCms
from tests.cli.conftest import done, refused

import pointillist as pt
from pointillist.data import load_filters, photographs
from pointillist.data.photofiles import Metadata, Photograph
from pointillist.storage import save_model

pytestmark = pytest.mark.usefixtures("no_leftovers")


@pytest.fixture(scope="module")
def colour():
    return np.round(255 * photographs("test", grey=False)["coffee"][100:148, 100:164]).astype(np.uint8)


@pytest.fixture(scope="module")
def missing(colour):
    holes = np.zeros(colour.shape[:2], bool)
    holes[20:23, 10:50] = True
    return holes


@pytest.fixture
def mend(cli, tmp_path, monkeypatch, missing):
    """Run a command in a folder with a mask and a small dictionary."""
    monkeypatch.chdir(tmp_path)
    Image.fromarray(np.where(missing, 255, 0).astype(np.uint8)).save("mask.png")
    save_model("few.safetensors", load_filters("natural-100")[:6], {})

    def run(command, *arguments):
        return cli(command, "--filters", "few.safetensors", "--penalty", "0.05", "--jobs", "1", *arguments)

    return run


def _metadata():
    exif = Image.Exif()
    exif[271] = "Maker"
    exif.get_ifd(0x8825).update({1: "N", 2: (50.0, 30.0, 12.5)})
    icc = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    return Metadata(exif=exif.tobytes()[6:], icc=icc, dpi=(300.0, 300.0))


@pytest.mark.parametrize("name", ["photo.tif", "photo.bmp", "deep.png"])
def test_inpaint_leaves_everything_else_as_it_was(mend, tmp_path, colour, missing, name):
    pixels = colour if "photo" in name else colour.astype(np.uint16) * 257 + 3
    metadata = Metadata() if name.endswith("bmp") else _metadata()
    pt.write_photograph(Photograph(pixels, metadata=metadata), tmp_path / name)
    before = pt.read_photograph(tmp_path / name)
    done(mend("inpaint", name, "--mask", "mask.png"))
    after = pt.read_photograph(tmp_path / name.replace(".", "-inpainted."))
    assert after.pixels.dtype == pixels.dtype
    np.testing.assert_array_equal(after.pixels[~missing], pixels[~missing])
    assert np.any(after.pixels[missing] != pixels[missing])
    assert (after.metadata.icc, after.metadata.dpi) == (before.metadata.icc, before.metadata.dpi)
    assert (b"Maker" in (after.metadata.exif or b"")) == (b"Maker" in (before.metadata.exif or b""))


def test_names_follow_the_commands(mend, tmp_path, colour):
    Image.fromarray(colour).save("photo.webp", lossless=True)
    Image.fromarray(colour[..., 0]).save("grey.gif")
    for command, options, name in (
        ("denoise", [], "photo-denoised.webp"),
        ("deblur", ["--gaussian", "1"], "photo-deblurred.webp"),
        ("super-resolve", [], "photo-enlarged.webp"),
    ):
        assert mend(command, "photo.webp", *options).code == 0
        assert (tmp_path / name).exists()
    assert mend("denoise", "grey.gif").code == 0
    assert Image.open("grey-denoised.png").mode == "L"


def test_what_exists_is_replaced_only_when_asked(mend, tmp_path, colour):
    Image.fromarray(colour).save("photo.png")
    (tmp_path / "photo-denoised.png").write_bytes(b"precious")
    refused(mend("denoise", "photo.png"), "photo-denoised.png", "exists already", "--overwrite")
    refused(mend("denoise", "photo.png", "-o", "out.png", "--compare", "photo-denoised.png"), "--overwrite")
    assert (tmp_path / "photo-denoised.png").read_bytes() == b"precious"
    assert not (tmp_path / "out.png").exists()
    assert mend("denoise", "photo.png", "--overwrite").code == 0
    assert Image.open("photo-denoised.png").size == (64, 48)


def test_two_inputs_of_one_name_are_refused_before_the_work(mend, tmp_path, colour, monkeypatch):
    monkeypatch.setattr("pointillist.read_photograph", lambda path: pytest.fail("worked first"))
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        Image.fromarray(colour).save(tmp_path / folder / "photo.png")
    refused(mend("denoise", "a/photo.png", "b/photo.png", "-o", "out"), "a/photo.png and b/photo.png", "photo.png")
    refused(mend("denoise", "a/photo.png", "a/photo.png"), "photo-denoised.png")
    (tmp_path / "a" / "photo.gif").write_bytes((tmp_path / "a" / "photo.png").read_bytes())
    refused(mend("denoise", "a"), "photo-denoised.png")  # both would become PNG
    refused(mend("denoise", "a/photo.png", "-o", "a/photo.png"), "input")
    refused(mend("denoise", "b/photo.png", "-o", "b"), "b/photo.png", "input")


def test_own_answers_in_a_folder_are_skipped(mend, tmp_path, colour):
    (tmp_path / "folder").mkdir()
    Image.fromarray(colour).save(tmp_path / "folder" / "photo.png")
    assert mend("denoise", "folder").code == 0
    answer = done(mend("denoise", "folder", "--overwrite"))
    assert "folder: 1 picture that pointillist wrote skipped" in answer.err
    assert sorted(os.listdir(tmp_path / "folder")) == ["photo-denoised.png", "photo.png"]
    assert mend("denoise", "folder/photo-denoised.png").code == 0  # by name it is taken
    (tmp_path / "folder" / "photo.png").unlink()
    refused(mend("denoise", "folder"), "folder", "only pictures that pointillist wrote")


def test_sizes_that_do_not_agree_are_refused_before_the_work(mend, tmp_path, colour, monkeypatch):
    monkeypatch.setattr("pointillist.read_photograph", lambda path: pytest.fail("worked first"))
    Image.fromarray(colour).save("photo.png")
    Image.fromarray(colour[:30]).save("small.png")
    refused(mend("denoise", "photo.png", "--reference", "small.png"), "--reference small.png", "64×30", "64×48")
    refused(mend("super-resolve", "photo.png", "--reference", "photo.png"), "--reference photo.png", "128×96")
    refused(mend("inpaint", "photo.png", "--mask", "small.png"), "--mask small.png", "64×30", "64×48")
    refused(mend("denoise", "photo.png", "--crop", "10,10,60,10"), "--crop 10,10,60,10", "photo.png", "64×48")
    for wrong in ("10,10", "a,b,c,d", "-1,0,5,5", "0,0,0,5"):
        refused(mend("denoise", "photo.png", f"--crop={wrong}"), "--crop", "X,Y,W,H")


def test_a_crop_is_mended_as_a_picture_of_its_own(mend, tmp_path, colour, missing):
    pt.write_photograph(Photograph(colour, metadata=_metadata()), tmp_path / "photo.png")
    done(mend("inpaint", "photo.png", "--mask", "mask.png", "--crop", "4,8,40,30", "--reference", "photo.png"))
    assert not (tmp_path / "photo-inpainted.png").exists()
    part = pt.read_photograph(tmp_path / "photo-crop-inpainted.png")
    assert part.metadata.dpi == pytest.approx((300, 300), rel=1e-3)
    Image.fromarray(colour[8:38, 4:44]).save("part.png")
    Image.fromarray(np.where(missing[8:38, 4:44], 255, 0).astype(np.uint8)).save("part-mask.png")
    assert mend("inpaint", "part.png", "--mask", "part-mask.png", "--reference", "part.png").code == 0
    np.testing.assert_array_equal(part.pixels, Image.open("part-inpainted.png"))


def test_a_crop_of_a_larger_picture_meets_its_part_of_the_reference(mend, tmp_path, colour):
    Image.fromarray(colour.repeat(2, 0).repeat(2, 1)).save("large.png")
    Image.fromarray(colour).save("photo.png")
    answer = done(mend("super-resolve", "photo.png", "--crop", "4,8,40,30", "--reference", "large.png"))
    assert "inf dB" in answer.out  # what it was before is the reference itself
    assert Image.open("photo-crop-enlarged.png").size == (80, 60)


def test_a_preview_shows_before_and_after_and_touches_nothing_else(mend, tmp_path, colour):
    Image.fromarray(colour).save("photo.jpg", quality=95)
    (tmp_path / "photo-denoised.jpg").write_bytes(b"precious")
    for _ in range(2):  # a preview may be made again and again
        done(mend("denoise", "photo.jpg", "--preview", "--sigma", "20"))
    assert (tmp_path / "photo-denoised.jpg").read_bytes() == b"precious"
    preview = np.asarray(Image.open("photo-preview.png"))
    assert preview.shape == (48, 64 + 8 + 64, 3)
    np.testing.assert_array_equal(preview[:, :64], pt.read_photograph("photo.jpg").pixels)
    assert np.any(preview[:, 72:] != preview[:, :64])
    Image.fromarray(colour).save("photo-preview.png")  # somebody's own picture of that name
    refused(mend("denoise", "photo.jpg", "--preview"), "photo-preview.png", "--overwrite")


def test_a_preview_of_a_part(mend, tmp_path, colour):
    np.save("photo.npy", colour[..., 0] / 255)
    assert mend("inpaint", "photo.npy", "--mask", "mask.png", "--preview", "--crop", "5,10,40,30").code == 0
    assert Image.open("photo-preview.png").size == (40 + 8 + 40, 30)


def test_a_preview_shows_the_damage_as_it_looks(mend, tmp_path, colour, missing):
    marked = colour.copy()
    marked[missing] = (255, 0, 255)
    Image.fromarray(marked).save("marked.png")
    assert mend("inpaint", "marked.png", "--preview").code == 0
    np.testing.assert_array_equal(np.asarray(Image.open("marked-preview.png"))[:, :64], marked)
    Image.fromarray(np.dstack([colour, np.where(missing, 0, 255).astype(np.uint8)])).save("erased.png")
    assert mend("inpaint", "erased.png", "--preview").code == 0
    before = np.asarray(Image.open("erased-preview.png"))[:, :64]
    np.testing.assert_array_equal(before, np.where(missing[..., None], 255, colour))


def test_a_preview_goes_where_the_damage_is(mend, tmp_path):
    picture = np.random.default_rng(0).integers(80, 120, (800, 1200)).astype(np.uint8)
    missing = np.zeros(picture.shape, bool)
    missing[700:710, 1000:1010] = True
    missing[100:103, 100:103] = True
    Image.fromarray(np.dstack([picture, np.where(missing, 0, 255).astype(np.uint8)])).save("erased.png")
    assert mend("inpaint", "erased.png", "--preview").code == 0
    before = np.asarray(Image.open("erased-preview.png"))[:, :512, 0]
    assert before.shape == (512, 512)
    assert np.sum(before == 255) == 100


def test_a_mask_may_be_drawn_on_a_transparent_layer(mend, tmp_path, colour, missing):
    Image.fromarray(colour).save("photo.png")
    layer = np.zeros((*missing.shape, 4), np.uint8)
    layer[missing] = (10, 20, 30, 255)  # dark paint: what is painted counts, not how bright it is
    Image.fromarray(layer).save("layer.png")
    assert mend("inpaint", "photo.png", "--mask", "layer.png", "-o", "a.png").code == 0
    assert mend("inpaint", "photo.png", "--mask", "mask.png", "-o", "b.png").code == 0
    np.testing.assert_array_equal(Image.open("a.png"), Image.open("b.png"))


def test_transparency_by_a_mask_stays(mend, tmp_path, colour):
    alpha = np.full(colour.shape[:2], 255, np.uint8)
    alpha[:5] = 0
    pt.write_photograph(Photograph(colour, alpha), tmp_path / "photo.tif")
    assert mend("inpaint", "photo.tif", "--mask", "mask.png").code == 0
    np.testing.assert_array_equal(pt.read_photograph("photo-inpainted.tif").alpha, alpha)


def test_a_folder_that_may_not_be_written_is_refused_before_the_work(mend, tmp_path, colour, monkeypatch):
    Image.fromarray(colour).save("photo.png")
    monkeypatch.setattr("pointillist.read_photograph", lambda path: pytest.fail("worked first"))
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)  # root may write anywhere
    refused(mend("denoise", "photo.png"), "photo-denoised.png", "no permission")


@pytest.mark.parametrize(
    ("names", "words"),
    [(["one.png"], "nothing was written for one.png"), (["one.png", "two.png"], "1 of 2 pictures were written")],
)
def test_ctrl_c_leaves_nothing_half_written(mend, tmp_path, colour, monkeypatch, names, words):
    for name in names:
        Image.fromarray(colour).save(name)
    denoise, calls = pt.denoise, []

    def interrupted(*given, **how):
        calls.append(given)
        if len(calls) == len(names):
            os.kill(os.getpid(), signal.SIGINT)
        return denoise(*given, **how)

    monkeypatch.setattr(pt, "denoise", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # which nohup makes children ignore
    answer = mend("denoise", *names, "--sigma", "5")
    signal.signal(signal.SIGINT, before)
    assert (answer.code, answer.err) == (130, f"error: interrupted; {words}\n")
    written = {f"{name[:-4]}-denoised.png" for name in names[:-1]}
    assert {path.name for path in tmp_path.glob("*.png")} == {"mask.png", *names, *written}
