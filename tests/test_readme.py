"""The README's Python example runs as it stands."""

import re
from pathlib import Path

import numpy as np

README = Path(__file__).parents[1] / "README.md"


def test_the_example_runs_and_certifies(tmp_path, monkeypatch, capsys):
    code = re.search(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S).group(1)
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    assert np.all(names["result"].gap <= 1e-3)
    assert "Status.CONVERGED" in capsys.readouterr().out
    assert (tmp_path / "filters.safetensors").exists()
