"""Every example runs from the command line and leaves its picture."""

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

EXAMPLES = Path(__file__).parent.parent / "examples" / "restore"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["inpaint", "denoise", "deblur", "super_resolve", "demosaic"])
def test_example_draws_its_picture(name, tmp_path):
    picture = tmp_path / "picture.png"
    done = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py", "--output", picture], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "dB" in done.stdout
    assert Image.open(picture).width > 500
