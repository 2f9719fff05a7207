"""Photographs with all that cameras and programs write beside their pixels."""

import numpy as np
import pytest
from PIL import Image, ImageCms

from pointillist.data import photographs
from pointillist.data.photofiles import Metadata, Photograph
from pointillist.data.photofiles.tiff import EXIF_IFD, EXIF_PREFIX, GPS_IFD, ORIENTATION

XMP = (
    b'<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF '
    b'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description tiff:Orientation="6" '
    b'xmlns:tiff="http://ns.adobe.com/tiff/1.0/"/></rdf:RDF></x:xmpmeta><?xpacket end="w"?>'
)


def _exif(orientation=1):
    """EXIF as a camera writes it, with maker's notes and a place on the earth, without the marker of JPEG."""
    exif = Image.Exif()
    exif[271], exif[272], exif[ORIENTATION] = "Maker", "Model 7", orientation
    exif.get_ifd(EXIF_IFD).update({36867: "2024:05:06 07:08:09", 37500: b"maker's own \0\1\2", 33434: (1, 250)})
    exif.get_ifd(GPS_IFD).update({1: "N", 2: (50.0, 30.0, 12.5), 3: "E", 4: (7.0, 6.0, 5.25)})
    return exif.tobytes().removeprefix(EXIF_PREFIX)


@pytest.fixture(scope="session")
def colour():
    """75×102 pixels of a photograph, uint8: no multiple of a block in either direction."""
    return np.round(255 * photographs("test", grey=False)["coffee"][100:175, 100:202]).astype(np.uint8)


@pytest.fixture(scope="session")
def icc():
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


@pytest.fixture
def make_exif():
    return _exif


@pytest.fixture
def xmp():
    return XMP


@pytest.fixture
def full(colour, icc):
    """A photograph with everything: 8-bit colour and alpha, EXIF, profile, resolution, XMP."""
    alpha = np.arange(colour.shape[0] * colour.shape[1]).reshape(colour.shape[:2]).astype(np.uint8)
    return Photograph(colour, alpha, Metadata(exif=_exif(), icc=icc, dpi=(300.0, 240.0), xmp=XMP))
