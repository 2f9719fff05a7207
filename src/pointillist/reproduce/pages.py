"""The record of a reproduction as a page: all verdicts first, then figure by figure."""

from pointillist.report.blocks import Fact, Facts, Page, Section, Settings, Verdict, Verdicts
from pointillist.report.machine import fact_items
from pointillist.reproduce.store import Record

BUSY = 0.5
"""Load for each thread, before the start, from which times are not to be trusted."""
_TITLE = "Stochastic convolutional sparse coding, reproduced"


def record_page(record: Record) -> Page:
    """The page about all finished figures."""
    verdicts = [verdict for outcome in record.outcomes.values() for verdict in outcome.verdicts]
    sections = [Section("Verdicts", [_numbers(record, verdicts), Verdicts(verdicts, brief=True)])]
    for outcome in record.outcomes.values():
        sections.append(Section(outcome.title, [Verdicts(outcome.verdicts), *outcome.blocks]))
    about = {name: str(value) for name, value in record.about.items()}
    sections.append(Section("Settings and machine", [Settings({**about, **fact_items(record.facts)})]))
    return Page(_TITLE, _summary(record, verdicts), sections)


def _summary(record: Record, verdicts: list[Verdict]) -> str:
    held = sum(verdict.holds for verdict in verdicts)
    words = (
        f"{held} of {len(verdicts)} claims of Xiong, Richtárik and Heidrich (2019) hold in this run, on "
        f"{record.about['data']}. Each verdict is computed from the numbers beside it; where one does not hold, it says why."
    )
    if record.about["scale"] == "quick":
        words += " This is the small scale: a look at everything in minutes, not a test of the paper's numbers."
    if record.facts["load"] and record.facts["load"][0] > BUSY * record.facts["threads"]:
        words += (
            " The machine was busy with other work: verdicts about time may be wrong, run it again when it is quiet."
        )
    if record.pending:
        words += f" Not finished yet: {', '.join(record.pending)}."
    return words


def _numbers(record: Record, verdicts: list[Verdict]) -> Facts:
    seconds = sum(outcome.seconds for outcome in record.outcomes.values())
    held = sum(verdict.holds for verdict in verdicts)
    rival = str(record.about["rival"])
    return Facts(
        [
            Fact(f"{held} of {len(verdicts)}", "claims hold"),
            Fact(f"{len(record.outcomes)}", "figures repeated", f"scale: {record.about['scale']}"),
            Fact(f"{seconds / 60:.1f} min", "of computing", f"{record.facts['threads']} threads"),
            Fact("SPORCO" if rival.startswith("SPORCO") else "our own", "frequency-domain method", rival),
        ]
    )
