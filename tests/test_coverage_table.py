"""The table of coverage: packages are summed up, and what falls short is said."""

import pytest
from coverage_table import packages, table


@pytest.mark.parametrize(("covered", "enough"), [(10, True), (9, False)])
def test_packages_are_summed_up_and_judged(covered, enough):
    numbers = {"storage/codec.py": (10, 10), "storage/files.py": (10, covered), "cli/app.py": (100, 97)}
    files = {
        f"src/pointillist/{name}": {
            "summary": {"num_statements": all_, "covered_lines": some, "num_branches": 0, "covered_branches": 0}
        }
        for name, (all_, some) in numbers.items()
    }
    lines, reached = table(packages({"files": files}))
    assert reached == enough
    assert [line.split()[0] for line in lines if "✗" in line] == ([] if enough else ["storage"])
