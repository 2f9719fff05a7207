"""Signatures of everything public: every argument is visible, described where it stands, and means the same everywhere."""

import enum
import inspect
import re
from inspect import Parameter

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from tests.public import public_names

import pointillist as pt

SHARED = {
    "n_jobs": (-1, Parameter.KEYWORD_ONLY),
    "tol": (None, Parameter.KEYWORD_ONLY),
    "device": ("cpu", Parameter.KEYWORD_ONLY),
    "random_state": (None, Parameter.KEYWORD_ONLY),
    "on_error": ("raise", Parameter.KEYWORD_ONLY),
    "boundary": ("same", Parameter.KEYWORD_ONLY),
    "penalty": (1.0, Parameter.POSITIONAL_OR_KEYWORD),
    "channels": (False, Parameter.KEYWORD_ONLY),
    "nonnegative": (False, Parameter.KEYWORD_ONLY),
    "sampling": (1.0, Parameter.KEYWORD_ONLY),
    "solver": ("cd", Parameter.KEYWORD_ONLY),
    "progress": (None, Parameter.KEYWORD_ONLY),
}
"""Default and kind of the names that several callables share."""

_REASONS = {
    "CoordinateDescent FrequencyADMM SampledADMM tol": "a solver holds its own tolerance, which None elsewhere refers to",
    "prefetch device": "moving batches ahead of time is of use on a device only",
    "CoordinateDescent.solve FrequencyADMM.solve SampledADMM.solve Solver.solve n_jobs": "its caller counts the threads",
    "deblur demosaic denoise super_resolve tol": "pictures gain nothing by codes that are nearer to the optimum",
    "deblur super_resolve boundary": "a blur carries what lies beyond the border into the picture, as codes must",
    "FilterUpdate nonnegative": "it speaks of filters, not of codes, and may be given by position",
    "deblur demosaic denoise inpaint super_resolve penalty": "restoration chooses the penalty by itself: auto",
    "learn_windows nonnegative": "an event is there or not, unless the caller says otherwise",
    "learn_windows penalty": "it follows the signals unless it is given",
    "Details PathPoint penalty": "a result, made by the package",
    "Problem penalty": "made by the package, of a penalty that was checked",
}
"""Where a shared name, the last word, has another default or kind, and why."""
OTHERWISE = {f"{name} {words.split()[-1]}" for words in _REASONS for name in words.split()[:-1]}

HANDED_ON = {
    "set_params params": "scikit-learn sets parameters by keyword, nested ones by names that are no identifiers here",
    "fit_transform fit": "scikit-learn hands all arguments of fit to it, and the two learners' fit take different ones",
}
"""Methods that take any keywords, and why."""


def _callables():
    """Public functions, constructors and public methods of public classes that the package defines, by name."""
    found = {}
    for name, value in public_names().items():
        if inspect.isfunction(value):
            found[name] = value
        elif isinstance(value, type) and not issubclass(value, BaseException | enum.Enum):
            if not getattr(value, "_is_protocol", False):
                found[name] = value
            methods = inspect.getmembers(value, lambda one: inspect.isfunction(one) or inspect.ismethod(one))
            found |= {
                f"{name}.{method}": one
                for method, one in methods
                if not method.startswith("_") and one.__module__.startswith("pointillist.")
            }
    return found


CALLABLES = _callables()
ESTIMATORS = [name for name, value in CALLABLES.items() if isinstance(value, type) and issubclass(value, BaseEstimator)]


def _parameters(value):
    signature = inspect.signature(value).parameters
    return {name: one for name, one in signature.items() if name not in ("self", "cls")}


_ELSEWHERE = re.compile(r"\W*(?:(?:[Aa]s|[Ll]ike) (?:in|for|of)|[Ss]ee)\b")


def _described(value):
    """Entries of the sections Parameters and, for what the package makes itself, Attributes: text by name."""
    text = inspect.getdoc(value) or ""
    entries = {}
    for section in re.findall(r"^(?:Parameters|Attributes)\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)", text, re.M | re.S):
        names = []
        for line in section.splitlines():
            if head := re.match(r"\*{0,2}(\w+(?:, \w+)*)(?: : (.*))?$", line):
                names = head[1].split(", ")
                entries |= dict.fromkeys(names, head[2] or "")
            else:
                entries |= {name: f"{entries[name]} {line.strip()}" for name in names}
    return entries


def test_every_argument_is_in_the_signature():
    hidden = {
        f"{name.rpartition('.')[2]} {parameter.name}"
        for name, value in CALLABLES.items()
        for parameter in _parameters(value).values()
        if parameter.kind in (Parameter.VAR_KEYWORD, Parameter.VAR_POSITIONAL)
    }
    assert hidden == set(HANDED_ON)


def test_every_argument_is_described_where_it_stands():
    assert [one for name, value in CALLABLES.items() for one in _undescribed(name, value)] == []


def _undescribed(name, value):
    """Arguments without a word of their own; a method may describe one in its text, between backticks."""
    texts = [value, *_protocols(name)]
    for parameter in _parameters(value):
        said = [_described(one).get(parameter, "") for one in texts]
        in_text = "." in name and any(f"`{parameter}`" in (inspect.getdoc(one) or "") for one in texts)
        if not in_text and not any(one and not _ELSEWHERE.match(one) for one in said):
            yield f"{name} {parameter}"


def _protocols(name):
    """The method as the bases and protocols of its class have it: what they describe, no class need repeat."""
    owner, _, method = name.partition(".")
    if not method:
        return []
    bases = [*public_names()[owner].__mro__, *_followed(public_names()[owner])]
    return [getattr(base, method) for base in bases if method in vars(base)]


def _followed(owner):
    """Protocols whose methods a class has."""
    return [
        protocol
        for protocol in (pt.sources.Source, pt.solvers.Solver)
        if all(hasattr(owner, method) for method in vars(protocol) if not method.startswith("_"))
    ]


@pytest.mark.parametrize("word", SHARED)
def test_a_shared_name_has_one_default_and_one_kind(word):
    users = {name: _parameters(value)[word] for name, value in CALLABLES.items() if word in _parameters(value)}
    assert users, f"nothing takes {word} any more: take it out of SHARED"
    broken = [
        f"{name} {word}"
        for name, one in users.items()
        if (one.default, one.kind) != SHARED[word] and f"{name} {word}" not in OTHERWISE
    ]
    assert broken == []


def _signals():
    rng = np.random.default_rng(0)
    return rng.standard_normal((2, 24)), rng.standard_normal((2, 5))


def _fit(**settings):
    pt.BatchCSC(2, 5, 0.1, max_iter=1, n_jobs=1, random_state=0, **settings).fit(_signals()[0])


EXCLUSIVE = {
    "denoise noise sigma": lambda: pt.denoise(np.ones((24, 24)), 3.0, noise="poisson"),
    "BatchCSC solver learning ridge": lambda: _fit(solver="admm", learning=pt.Ridge()),
    "BatchCSC update forgetting": lambda: _fit(update=pt.FilterUpdate(forgetting=3.0)),
    "BatchCSC rank channels": lambda: _fit(rank=1),
    "BatchCSC nonnegative rank": lambda: _fit(channels=True, rank=2, update=pt.FilterUpdate(nonnegative=True)),
}
"""Calls with two arguments of which one would be ignored: each is an error that names one of them."""


@pytest.mark.parametrize("pair", EXCLUSIVE)
def test_of_two_arguments_none_is_ignored(pair):
    with pytest.raises(ValueError, match="|".join(pair.split()[1:])):
        EXCLUSIVE[pair]()
