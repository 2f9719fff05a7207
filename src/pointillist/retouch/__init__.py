"""Retouching of photographs: damage and marks found as masks for `inpaint`, and the page on which photographs are mended."""
