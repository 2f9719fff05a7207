"""How large the experiments are: the paper's sizes where two cores can afford them, and a small scale for a quick look."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Sizes of a run.

    Parameters
    ----------
    n_filters, n_overcomplete, filter_size : int
        K of the under- and the over-complete dictionary, and the side of a filter.
    n_images, side : int
        Images of the small sets (fruit, city), and how much of each is used.
    n_judged : int
        Unseen images that dictionaries are judged on.
    iterations : int
        Of batch learning (Fig. 1).
    passes, rival_passes : int
        Of online learning (Fig. 2), ours and the frequency-domain method's.
    rival_seconds : float
        Learning time of the frequency-domain batch learner that others must beat to a level (Fig. 1).
    n_patches, n_rival_patches, n_single : int
        Natural patches learned from with mini-batches, by the frequency-domain method, and one at a time (Fig. 4, 5).
    batch_size, n_tested : int
        Patches in a mini-batch, and unseen patches that are coded to judge (Fig. 5).
    n_pictures, picture_side : int
        Test pictures (Fig. 3, 4), and their side.
    fractions, counts, sides, signals : tuple
        p, K, filter sides and image sides that time is measured over.
    repeats : int
        Measurements of each time, of which the shortest counts.
    """

    n_filters: int = 100
    n_overcomplete: int = 400
    filter_size: int = 11
    n_images: int = 10
    side: int = 100
    n_judged: int = 4
    iterations: int = 12
    passes: int = 6
    rival_passes: int = 2
    rival_seconds: float = 60.0
    n_patches: int = 1000
    n_rival_patches: int = 400
    n_single: int = 250
    batch_size: int = 20
    n_tested: int = 20
    n_pictures: int = 10
    picture_side: int = 256
    fractions: tuple[float, ...] = (0.05, 0.1, 0.2, 0.5, 1.0)
    counts: tuple[int, ...] = (25, 50, 100, 200)
    sides: tuple[int, ...] = (5, 7, 11, 15)
    signals: tuple[int, ...] = (50, 100, 200)
    repeats: int = 3


FULL = Scale()
QUICK = Scale(
    n_filters=32,
    n_overcomplete=128,
    filter_size=7,
    n_images=4,
    side=56,
    n_judged=2,
    iterations=8,
    passes=6,
    rival_seconds=5.0,
    n_patches=400,
    n_rival_patches=40,
    n_single=60,
    batch_size=20,
    n_tested=4,
    n_pictures=3,
    picture_side=96,
    counts=(16, 32, 64),
    sides=(5, 7, 9),
    signals=(32, 64, 128),
    repeats=2,
)
