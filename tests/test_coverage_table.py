"""The table of coverage: packages are summed up, and what falls short is said."""

from coverage_table import ALL, packages, table


def _file(statements, covered, branches=0, covered_branches=0):
    counts = {"num_statements": statements, "covered_lines": covered}
    return {"summary": {**counts, "num_branches": branches, "covered_branches": covered_branches}}


def test_packages_are_summed_up_and_judged():
    files = {
        "src/pointillist/storage/codec.py": _file(10, 10, 4, 4),
        "src/pointillist/cli/app.py": _file(100, 97),
        "src/pointillist/cli/learn.py": _file(100, 99),
        "src/pointillist/errors.py": _file(5, 5),
    }
    counts = packages({"files": files})
    assert set(counts) == {"storage", "cli", "errors", ALL}
    assert counts["cli"]["covered"] == 196
    lines, reached = table(counts)
    assert reached
    assert lines[-1].split()[-2:] == ["98.2%", "95%"]
    files["src/pointillist/storage/files.py"] = _file(10, 9)
    lines, reached = table(packages({"files": files}))
    assert not reached
    assert [line for line in lines if "✗" in line and line.startswith("storage")]
