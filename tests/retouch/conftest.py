"""A session of the page with a small photograph, without a browser."""

import warnings
from contextlib import closing

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("httpx")

PORT, TOKEN = 8123, "a-token"


@pytest.fixture
def photograph(tmp_path):
    """A grey-green ramp as PNG."""
    y, x = np.mgrid[:40, :60]
    pixels = np.stack([60 + x, 90 + y, 100 + x + y], axis=-1).astype(np.uint8)
    path = tmp_path / "ramp.png"
    Image.fromarray(pixels).save(path, dpi=(300, 300))
    return path


@pytest.fixture
def marked(photograph):
    """The ramp with a bar of 4 by 30 pixels in magenta."""
    pixels = np.array(Image.open(photograph))
    pixels[10:14, 20:50] = 255, 0, 255
    path = photograph.with_name("marked.png")
    Image.fromarray(pixels).save(path)
    return path


@pytest.fixture
def session():
    from pointillist.retouch.session import Session

    with closing(Session()) as opened:
        yield opened
    assert not opened.folder.exists()


@pytest.fixture
def client(session):
    """A client that has the token."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # new versions would rather have httpx's successor; both serve
        from starlette.testclient import TestClient

    from pointillist.retouch.server import TOKEN_HEADER, make_app

    app = make_app(session, TOKEN, PORT)
    return TestClient(app, base_url=f"http://127.0.0.1:{PORT}", headers={TOKEN_HEADER: TOKEN})
