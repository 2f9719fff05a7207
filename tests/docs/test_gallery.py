"""Every example of the gallery runs and leaves its picture; the page shows what the script says."""

import re
import subprocess
import sys
from pathlib import Path

import docs_gallery
import pytest
from PIL import Image

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "examples" / "gallery").glob("*.py"))


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_example_draws_its_picture(script, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert Image.open(tmp_path / f"{script.stem}.png").width > 800


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_picture_is_kept_for_the_site(script):
    picture = ROOT / "docs" / "gallery" / f"{script.stem}.webp"
    assert picture.stat().st_size < 400_000
    assert picture.with_suffix(".txt").exists()
    assert f"gallery/{script.stem}.md" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")


def test_cards_and_navigation_agree():
    assert sorted(docs_gallery.ORDER) == [script.stem for script in SCRIPTS]
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert re.findall(r"gallery/(\w+)\.md$", navigation, re.M) == ["index", *docs_gallery.ORDER]
    assert re.findall(r'href="(\w+)\.html"', docs_gallery.index()) == list(docs_gallery.ORDER)
