"""``python -m pointillist.cli`` does what ``pointillist`` does."""

from pointillist.cli import main

main()
