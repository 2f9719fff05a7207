"""Every example of the gallery runs and leaves its picture; the page shows what the script says."""

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
    groups = docs_gallery.GROUPS
    assert sorted(docs_gallery.ORDER) == [script.stem for script in SCRIPTS]
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = "".join(
        f"      - {title}:\n" + "".join(f"          - gallery/{name}.md\n" for name in names)
        for title, names in groups.items()
    )
    assert listed in navigation
    page = docs_gallery.index()
    assert all(f'href="{name}.html"' in page for name in docs_gallery.ORDER)
