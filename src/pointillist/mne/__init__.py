"""Recordings of MNE: `CSC` has the habits of ``mne.preprocessing.ICA`` on Raw and Epochs.

MNE itself is imported when it is first needed; ``pip install 'pointillist[mne]'`` brings it.
"""

from pointillist.mne.csc import CSC, read_csc

__all__ = ["CSC", "read_csc"]
