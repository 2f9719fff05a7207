"""Tests of damaged files: whatever bytes are changed, readers return or raise an error that names the file."""

import io
import random
import struct
import warnings

import numpy as np
import pytest
import tifffile
from attack.bytewise import mutated_bytes
from attack.specimens import PICTURE, PICTURES, STACK, TIFFS, hdf5, npy, tiff
from PIL import Image

import pointillist as pt
from pointillist.data.damage import check_claim
from pointillist.data.photofiles.files import photograph_size
from pointillist.data.samples import map_npy

HEADER = "{{'descr': {!r}, 'fortran_order': False, 'shape': {}, }}"


KINDS = {
    "npy": npy,
    "png": PICTURES["png"],
    "jpg": PICTURES["jpg"],
    "h5": lambda: hdf5(chunks=(1, 8, 9), compression="gzip"),
    **{name: make for name, make in TIFFS.items() if name not in ("big tiff", "colour tiff")},
}
MUTANTS = 60


def every_reader(path):
    """Errors of the package or of the system that reading a file in all ways gives; others come out of here."""
    found = []
    for read in (
        lambda: pt.load_signals(path),
        lambda: pt.open_source(f"{path}::group/images" if path.suffix == ".h5" else path).read(0),
        lambda: pt.open_source(path, ndim=3, on_error="skip").shape(0),
        lambda: pt.load_image(path),
        lambda: pt.read_photograph(path),
    ):
        try:
            read()
        except (pt.PointillistError, OSError) as error:
            found.append(str(error))
    return found


@pytest.mark.parametrize("tag", [256, 257, 277, 278])
def test_sizes_of_tiff_pages_are_single_numbers(tmp_path, tag):
    """Some versions of tifffile repeat a list of sizes as often as another size says, until memory ends."""
    content = bytearray(TIFFS["imagej tiff"]())
    order = ">" if content[:2] == b"MM" else "<"
    entry = content.index(struct.pack(f"{order}H", tag), 8)
    struct.pack_into(f"{order}I", content, entry + 4, 2000)
    (tmp_path / "a.tif").write_bytes(content)
    for read in (pt.load_signals, pt.read_photograph):
        with pytest.raises(pt.UnreadableFileError, match=r"a\.tif.* is not one number"):
            read(tmp_path / "a.tif")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("kind", KINDS)
def test_changed_bytes_give_errors_that_name_the_file(tmp_path, kind):
    content, damaged = KINDS[kind](), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(MUTANTS):
            path = tmp_path / f"{i}.{kind.rpartition(' ')[2][:4].replace('tiff', 'tif')}"
            path.write_bytes(mutated_bytes(random.Random(i), content))
            errors = every_reader(path)
            assert all(path.name in error for error in errors)
            damaged += bool(errors)
    assert damaged > MUTANTS / 10


def with_header(path, header, samples=b"", version=1):
    length = len(header).to_bytes(2 if version == 1 else 4, "little")
    path.write_bytes(b"\x93NUMPY" + bytes([version, 0]) + length + header.encode("latin-1") + samples)
    return path


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (HEADER.format("<f4", "(1099511627776, 8, 8)"), "0 of the 281,474,976,710,656 bytes that its header claims"),
        (HEADER.format("<f4", "(4294967296, 4294967296, 4)"), "bytes that its header claims"),
        (HEADER.format("<f4", "(0, 5)"), "it holds nothing"),
        (HEADER.format("|O", "(1, 5)"), "Python objects"),
        (HEADER.format("<f4", "(-2, -5)"), "cannot read"),
        (HEADER.format("<q9", "(2, 5)"), "cannot read"),
        (HEADER.format("<f4", "(2, 5)")[:-3] + "'", "cannot read"),
        (HEADER.format("<f4", "(2L, 5L"), "cannot read"),
        ("{" * 3000, "cannot read"),
        ("[1, 2]", "cannot read"),
        ("\xff\0\n", "cannot read"),
    ],
)
def test_headers_of_npy_files_must_fit_the_files(tmp_path, header, words):
    path = with_header(tmp_path / "a.npy", header)
    for read in (map_npy, pt.load_signals, pt.read_photograph):
        with pytest.raises(pt.UnreadableFileError, match=words) as found:
            read(path)
        assert "a.npy" in str(found.value)


def test_npy_files_of_both_versions_and_orders_are_read(tmp_path):
    columns = np.asfortranarray(STACK[0])
    np.save(tmp_path / "a.npy", columns)
    np.testing.assert_array_equal(map_npy(tmp_path / "a.npy"), columns)
    path = with_header(tmp_path / "b.npy", HEADER.format("<f4", "(8, 9)"), STACK[0].tobytes(), version=2)
    np.testing.assert_array_equal(map_npy(path), STACK[0])
    for version in (3, 4):
        path = with_header(tmp_path / "c.npy", HEADER.format("<f4", "(8, 9)"), STACK[0].tobytes(), version)
        with pytest.raises(pt.UnreadableFileError, match="cannot read"):
            map_npy(path)


def with_tags(path, **values):
    """A TIFF file whose tags were overwritten."""
    with tifffile.TiffFile(path, mode="r+") as file:
        for name, value in values.items():
            for page in file.pages:
                page.tags[name].overwrite(value)
    return path


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(
    "claims",
    [
        {"ImageWidth": 2**31, "ImageLength": 2**31, "RowsPerStrip": 2**31},
        {"ImageWidth": 12_000, "ImageLength": 12_000, "RowsPerStrip": 12_000},
        {"ImageLength": 2**24, "RowsPerStrip": 1},
        {"SamplesPerPixel": 65_535, "ImageWidth": 5000, "ImageLength": 5000, "RowsPerStrip": 5000},
    ],
)
def test_tiff_files_cannot_claim_what_they_do_not_have(tmp_path, claims, count):
    pages = np.stack([PICTURE] * count) if count > 1 else PICTURE
    tifffile.imwrite(tmp_path / "a.tif", pages, photometric="minisblack", compression="zlib")
    path = with_tags(tmp_path / "a.tif", **claims)
    for read in (pt.load_image, pt.load_signals, lambda path: pt.sources.TiffSource(path).read(0)):
        with pytest.raises(pt.UnreadableFileError, match=r"a\.tif"):
            read(path)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("bigtiff", [False, True])
@pytest.mark.parametrize("back", [0, 1, 2])
def test_pages_of_tiff_files_in_a_circle_end(tmp_path, bigtiff, back):
    content = bytearray(tiff(bigtiff=bigtiff, metadata=None, compression="zlib"))
    with tifffile.TiffFile(io.BytesIO(content)) as file:
        starts, last = [page.offset for page in file.pages], file.pages[-1]
        tags = len(last.tags)
    if bigtiff:
        end, form = last.offset + 8 + 20 * tags, "<Q"
    else:
        end, form = last.offset + 2 + 12 * tags, "<I"
    struct.pack_into(form, content, end, starts[back])
    path = tmp_path / "a.tif"
    path.write_bytes(content)
    for read in (pt.load_image, pt.load_signals, pt.sources.TiffSource):
        with pytest.raises(pt.UnreadableFileError, match=r"a\.tif.* its pages lead in a circle"):
            read(path)


def test_tiff_files_lead_to_no_other_file(tmp_path):
    uuid = '<UUID FileName="{}">urn:uuid:{}</UUID>'
    data = '<TiffData FirstT="{}" IFD="0" PlaneCount="1">{}</TiffData>'
    names = ["a.ome.tif", "other.tif"]
    described = "".join(data.format(t, uuid.format(name, t)) for t, name in enumerate(names))
    head = '<?xml version="1.0"?><OME xmlns="http://www.openmicroscopy.org/Schemas/OME/2016-06" UUID="urn:uuid:0">'
    pixels = '<Image ID="Image:0"><Pixels ID="Pixels:0" DimensionOrder="XYCZT" Type="uint8" SizeX="14" SizeY="12" '
    xml = f'{head}{pixels}SizeC="1" SizeZ="1" SizeT="2">{described}</Pixels></Image></OME>'
    for name in names:
        tifffile.imwrite(tmp_path / name, PICTURE, photometric="minisblack", description=xml, metadata=None)
    assert len(tifffile.imread(tmp_path / "a.ome.tif")) == 2  # as tifffile does unless told otherwise
    assert len(pt.sources.TiffSource(tmp_path / "a.ome.tif")) == 1


def test_pictures_that_are_programs_or_archives_are_neither_run_nor_read(tmp_path):
    Image.new("RGB", (20, 20)).save(tmp_path / "a.eps")
    np.savez(tmp_path / "a.npz", STACK)
    for name, other, words in (("a.eps", "a.png", r"a\.png .*PostScript"), ("a.npz", "a.npy", r"a\.npy")):
        (tmp_path / name).rename(tmp_path / other)
        with pytest.raises(pt.UnreadableFileError, match=words):
            pt.read_photograph(tmp_path / other)


def test_claims_ask_for_no_more_sizes_than_needed():
    def sizes():
        yield from (100, 10**9)
        pytest.fail("asked for more than needed")

    check_claim(2**26, iter(()))
    check_claim(10**12, sizes())
    with pytest.raises(ValueError, match="claims 1,000,000,000 bytes of samples but has 99,999"):
        check_claim(10**9, [99_999])


@pytest.mark.parametrize("suffix", [".png", ".heic", ".dng", ".gif", ".tif"])
def test_files_larger_than_any_image_are_not_read(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    with path.open("wb") as file:
        file.truncate(2**40)
    for read in (pt.load_image, photograph_size):
        with pytest.raises(pt.UnreadableFileError, match=rf"a\{suffix} .*1,099,511,627,776 bytes"):
            read(path)


def test_samples_beyond_float32_are_named(tmp_path):
    np.save(tmp_path / "a.npy", np.full((8, 9), 1e300))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(pt.UnreadableFileError, match=r"a\.npy: its samples are too large for float32"):
            pt.load_image(tmp_path / "a.npy")
