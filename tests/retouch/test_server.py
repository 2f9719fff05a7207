"""The server without a browser: who may ask, what is answered, and what becomes of a photograph."""

import io
import socket
import time

import numpy as np
import pytest
from PIL import Image

import pointillist as pt
from pointillist.data.photofiles import Metadata, Photograph
from pointillist.retouch import server
from pointillist.retouch import session as sessions
from pointillist.retouch.server import TOKEN_HEADER, mask_view, picture_view

PORT, TOKEN = 8123, "a-token"  # as in conftest.py
LINE = {"kind": "paint", "radius": 2, "points": [10, 10, 40, 25]}


def _upload(client, path, name=None):
    return client.put("/picture", params={"name": name or path.name}, content=path.read_bytes())


def _wait(client, seconds=240):
    end = time.monotonic() + seconds
    while client.get("/state").json()["job"]["state"] in ("running", "stopping"):
        assert time.monotonic() < end
        time.sleep(0.02)
    return client.get("/state").json()


def test_the_page_and_its_files_are_served_with_a_strict_policy(client):
    for path, kind in [("/", "text/html"), ("/app.js", "text/javascript"), ("/app.css", "text/css")]:
        answer = client.get(path)
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith(kind)
        assert answer.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert answer.headers["cache-control"] == "no-store"
    assert client.get("/server.py").status_code == 404
    assert client.get("/..%2fserver.py").status_code == 404


def test_the_first_address_gives_the_cookie_that_the_others_need(client):
    del client.headers[TOKEN_HEADER]
    assert client.get("/state").status_code == 403
    assert client.get("/", params={"token": "other"}).status_code == 403
    assert "set-cookie" not in client.get("/", params={"token": "other"}).headers
    first = client.get("/", params={"token": TOKEN})
    assert first.status_code == 200
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(first.headers["set-cookie"].split("; "))
    assert client.get("/state").status_code == 200


def test_a_browser_is_started_with_a_ticket_for_one_visit(session):
    from starlette.testclient import TestClient

    app = server.make_app(session, TOKEN, PORT, "a-ticket")
    first, second = (TestClient(app, base_url=f"http://127.0.0.1:{PORT}") for _ in range(2))
    assert first.get("/state", params={"token": "a-ticket"}).status_code == 403
    assert first.get("/", params={"token": "a-ticket"}).status_code == 200
    assert first.get("/state").status_code == 200
    assert second.get("/", params={"token": "a-ticket"}).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {"host": "127.0.0.1:80"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {TOKEN_HEADER: "é"},
    ],
)
def test_other_hosts_and_other_pages_are_refused(client, headers):
    encoded = {name: value.encode() for name, value in headers.items()}
    assert client.get("/state", headers=encoded).status_code == 403
    assert client.post("/find", headers=encoded).status_code == 403


def test_a_line_is_mended_and_the_rest_untouched(client, photograph):
    assert _upload(client, photograph, "../../my photo.png").json()["picture"]["name"] == "my photo.png"
    assert client.post("/mend", json={"task": "inpaint", "steps": [LINE]}).status_code == 200
    state = _wait(client)
    assert state["job"]["state"] == "done", state["job"]["error"]
    assert state["result"]["name"] == "my photo-inpainted.png"
    assert state["result"]["task"] == "inpaint"
    answer = client.get("/download")
    assert "my%20photo-inpainted.png" in answer.headers["content-disposition"]
    image = Image.open(io.BytesIO(answer.content))
    assert image.info["dpi"] == pytest.approx((300, 300), rel=1e-3)
    before, after = np.asarray(Image.open(photograph)), np.asarray(image)
    changed = (before != after).any(axis=-1)
    assert changed.sum() <= 4 * np.hypot(30, 15) + 4 * np.pi + 20
    assert np.max(np.abs(before.astype(int) - after)) <= 3
    view = client.get("/view", params={"of": "after", "x": 0, "y": 0, "w": 60, "h": 40, "scale": 1})
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(view.content))), after)

    adopted = client.post("/adopt", json={}).json()
    assert adopted["result"] is None
    assert adopted["picture"]["name"] == "my photo-inpainted.png"


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        ([], "Nothing is painted yet"),
        ([LINE, {"kind": "clear"}], "Nothing is painted yet"),
        ([{"kind": "paint", "radius": 500, "points": [0, 0]}], "Everything is painted over"),
        ("everything", "reload the page"),
        ([7], "reload the page"),
    ],
)
def test_what_cannot_be_filled_in_is_said(client, photograph, steps, sentence):
    _upload(client, photograph)
    answer = client.post("/mend", json={"task": "inpaint", "steps": steps})
    assert answer.status_code == 400
    assert sentence in answer.json()["error"]


@pytest.mark.parametrize(
    ("content", "sentence"), [(b"", "is empty"), (b"nonsense", "could not be opened"), (None, "could not be opened")]
)
def test_files_that_cannot_be_opened_are_named(client, session, photograph, content, sentence):
    whole = photograph.read_bytes()
    content = whole[: len(whole) // 2] if content is None else content
    answer = client.put("/picture", params={"name": "old.png"}, content=content)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("old.png")
    assert sentence in answer.json()["error"]
    assert str(session.folder) not in answer.json()["error"]
    assert client.get("/state").json()["picture"] is None


def test_there_is_nothing_without_a_photograph(client):
    assert client.post("/mend", json={"task": "denoise"}).status_code == 400
    assert client.post("/mend", content=b"[").status_code == 400
    assert client.post("/find", json={}).status_code == 400
    assert client.get("/download").status_code == 404
    assert client.post("/adopt", json={}).status_code == 404
    view = {"x": 0, "y": 0, "w": 5, "h": 5, "scale": 1}
    assert client.get("/view", params={**view, "of": "before"}).status_code == 400
    assert client.get("/view", params={**view, "of": "9"}).status_code == 404


def test_one_thing_at_a_time_and_cancelling(client, photograph, monkeypatch):
    def slow(photograph, mask, progress, task):
        for _ in range(100_000):
            progress(0.01)
            time.sleep(0.001)

    monkeypatch.setattr(sessions, "mended", slow)
    _upload(client, photograph)
    assert client.post("/mend", json={"task": "denoise"}).json()["job"]["state"] == "running"
    again = client.post("/mend", json={"task": "denoise"})
    assert again.status_code == 409
    assert "at work already" in again.json()["error"]
    assert _upload(client, photograph).status_code == 409
    client.post("/cancel", json={})
    assert _wait(client)["job"]["state"] == "cancelled"
    assert client.get("/state").json()["result"] is None


def test_what_was_found_can_be_seen_and_used(client, photograph, monkeypatch):
    mask = np.zeros((40, 60), bool)
    mask[10:12, 20:30] = True
    monkeypatch.setattr(pt, "find_damage", lambda pixels, kind, **options: mask)
    monkeypatch.setattr(sessions, "mended", lambda photograph, mask, progress, task: used.append(mask) or photograph)
    used = []
    _upload(client, photograph)
    client.post("/find", json={})
    [(number, count)] = _wait(client)["found"].items()
    assert count == 20
    assert client.post("/sing", json={}).status_code == 404
    view = client.get("/view", params={"of": number, "x": 0, "y": 0, "w": 60, "h": 40, "scale": 1})
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(view.content)).getchannel("A")) > 0, mask)
    client.post("/mend", json={"task": "inpaint", "steps": [{"kind": "found", "id": int(number)}]})
    assert _wait(client)["job"]["state"] == "done"
    assert np.array_equal(used[0], mask)


def test_coloured_marks_are_painted_over_already(client, photograph, marked):
    _upload(client, marked)
    state = _wait(client)
    assert state["job"]["what"] == "marks"
    steps = [{"kind": "found", "id": state["marks"]["id"]}]
    client.post("/mend", json={"task": "inpaint", "steps": steps, "texture": 0})
    assert _wait(client)["job"]["state"] == "done"
    mended = np.asarray(Image.open(io.BytesIO(client.get("/download").content))).astype(int)
    assert np.max(np.abs(mended - np.asarray(Image.open(photograph)))) <= 2


def test_a_port_that_is_taken_is_named():
    with socket.socket() as other:
        other.bind((server.ADDRESS, 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(OSError, match=f"port {port} .* leave --port out"):
            server.serve(port=port, ready=print)


def _box(x, y, width, height, scale):
    return {"x": str(x), "y": str(y), "w": str(width), "h": str(height), "scale": str(scale)}


def _opened(answer):
    image = Image.open(io.BytesIO(answer[0]))
    assert answer[1] == f"image/{image.format.lower()}"
    return image


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.float32])
def test_at_full_scale_pixels_are_exact(kind):
    shown = np.random.default_rng(0).integers(0, 256, (30, 40, 3))
    factor = {np.uint8: 1, np.uint16: 257, np.float32: 1 / 255}[kind]
    photograph = Photograph((shown * factor).astype(kind))
    part = np.asarray(_opened(picture_view(photograph, _box(5, 7, 100, 10, 1.0))))
    assert np.array_equal(part, shown[7:17, 5:])


def test_smaller_views_keep_profile_and_transparency():
    pixels, alpha = np.full((300, 400), 100, np.uint8), np.zeros((300, 400), np.uint8)
    plain = Photograph(pixels, metadata=Metadata(icc=b"a profile"))
    image = _opened(picture_view(plain, _box(0, 0, 400, 300, 0.25)))
    assert (image.format, image.size, image.info["icc_profile"]) == ("JPEG", (100, 75), b"a profile")
    clear = _opened(picture_view(Photograph(pixels, alpha), _box(0, 0, 400, 300, 0.25)))
    assert clear.mode == "LA"
    assert np.asarray(clear.getchannel("A")).max() == 0


def test_a_thin_scratch_stays_visible_in_a_small_view():
    mask = np.zeros((400, 400), bool)
    mask[:, 201] = True
    shown = np.asarray(_opened(mask_view(mask, _box(0, 0, 400, 400, 0.25))).getchannel("A"))
    assert shown.max() > 200
    assert np.count_nonzero(shown.any(axis=0)) == 1


@pytest.mark.parametrize(
    "query", [{}, {"x": "a"}, {"x": "-1"}, {"w": "0"}, {"scale": "0"}, {"scale": "2"}, {"scale": "nan"}, {"x": "400"}]
)
def test_views_of_nothing_are_refused(query):
    photograph = Photograph(np.zeros((300, 400), np.uint8))
    with pytest.raises(ValueError, match=r"view|scale"):
        picture_view(photograph, {**_box(0, 0, 400, 300, 1), **query} if query else {})


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        ({"task": "sing"}, "task must be one of"),
        ({"task": "denoise", "version": 99}, "Another photograph"),
        (["mend"], "mapping"),
    ],
)
def test_impossible_wishes_are_refused(client, photograph, wish, words):
    _upload(client, photograph)
    answer = client.post("/mend", json=wish)
    assert answer.status_code == 400
    assert words in answer.json()["error"]


@pytest.mark.parametrize(
    ("path", "asked", "words"),
    [
        ("/find", {"sensitivity": 2}, "sensitivity"),
        ("/find", {"kind": "stains"}, "stains"),
        ("/estimate", {"blur": "wind"}, "wind"),
        ("/mend", {"task": "denoise", "sigma": -1}, "sigma"),
        ("/mend", {"task": "inpaint", "steps": [LINE], "texture": 1.1}, "texture"),
        ("/mend", {"task": "deblur", "blur": "motion", "length": 1e6, "angle": 0}, "length"),
        ("/mend", {"task": "deblur", "blur": "gaussian", "width": 0}, "sigma"),
    ],
)
def test_what_the_library_refuses_is_said(client, photograph, path, asked, words):
    _upload(client, photograph)
    assert client.post(path, json=asked).status_code == 200
    job = _wait(client)["job"]
    assert job["state"] == "failed"
    assert words in job["error"]
