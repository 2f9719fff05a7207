"""A folder as a reader of the documentation has it: a photograph and a folder of photographs."""

import sys
from importlib.resources import as_file, files
from pathlib import Path
from shutil import copyfile

import pytest
from PIL import Image

sys.path.append(str(Path(__file__).parents[2] / "scripts"))  # where the scripts of the site find each other


@pytest.fixture
def readers_folder(tmp_path, monkeypatch):
    """The current folder, with photo.jpg, a photo.png that has erased pixels, and photos/."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    for name in ("camera", "coffee"):
        with as_file(files("pointillist.data").joinpath("photographs", f"{name}.jpg")) as path:
            small = Image.open(path).resize((96, 80))
            small.save(tmp_path / "photos" / f"{name}.jpg")
    copyfile(tmp_path / "photos" / "coffee.jpg", tmp_path / "photo.jpg")
    erased = Image.open(tmp_path / "photo.jpg").convert("RGB")
    erased.paste((255, 0, 255), (30, 30, 60, 34))
    erased.save(tmp_path / "photo.png")
    return tmp_path
