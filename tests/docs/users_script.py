"""A user's script, checked by mypy in strict mode."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import pointillist as pt


def learn(folder: Path) -> pt.OnlineCSC:
    images = pt.contrast_normalise(pt.load_images(folder))
    model = pt.OnlineCSC(n_filters=16, filter_size=7, penalty=1.0, random_state=0).fit(images)
    pt.save(model, folder / "filters.safetensors", preprocessing={"normalise": "contrast"})
    return model


def describe(model: pt.OnlineCSC, image: NDArray[np.float32]) -> str:
    result: pt.Result = model.encode([image])
    codes: pt.SparseCodes = result.codes
    strongest = max(float(np.abs(values).max()) for values in codes.values)
    if result.status is not pt.Status.CONVERGED:
        raise RuntimeError(result.status.advice)
    gap = float(result.gap.max())
    history = [record["objective"] for record in model.history_]
    return f"{codes.nnz} codes, strongest {strongest:.2f}, gap {gap:.1e}, objective {history[-1]:.0f}"


def compare(image: NDArray[np.float32], filters: NDArray[np.float32]) -> dict[float, float]:
    quality = {}
    for point in pt.penalty_path([image], filters, n=4):
        fits = pt.decode(point.result.codes, filters)
        quality[point.penalty] = pt.psnr(image, fits[0])
    solver = pt.solvers.CoordinateDescent(max_iter=50)
    quality[0.0] = float(pt.encode([image], filters, 0.1, solver=solver, n_jobs=1).objective[0])
    return quality


def mend(photo: NDArray[np.uint8], missing: NDArray[np.bool_]) -> NDArray[np.uint8]:
    mended = pt.inpaint(photo, missing)
    careful, details = pt.inpaint(photo, missing, penalty=0.02, return_details=True)
    print(details.penalty, careful.shape)
    sharp = pt.deblur(photo, np.ones((3, 3)), sigma=2.0)
    large = pt.super_resolve(photo, 2)
    print(sharp.shape, large.shape, pt.denoise(photo).shape, pt.estimate_sigma(photo))
    return mended.astype(np.uint8)


def keep(name: str) -> tuple[str, ...]:
    photo: pt.Photograph = pt.read_photograph(name)
    print(photo.metadata.dpi, photo.notes, photo.peak)
    return pt.write_photograph(photo.with_pixels(pt.denoise(photo.pixels)), f"mended-{name}")


def main() -> None:
    model = learn(Path("photos"))
    again = pt.load("photos/filters.safetensors")
    photos = pt.photographs("test")
    image = pt.contrast_normalise(photos["camera"])
    print(describe(model, image.astype(np.float32)), again.filters_.shape)
    print(compare(image.astype(np.float32), pt.load_filters("natural-100")))
    pt.save_codes(model.transform([image]), "codes.safetensors")
    print(pt.load_codes("codes.safetensors").nnz)
    grey = (255 * photos["camera"]).astype(np.uint8)
    print(mend(grey, grey > 250).dtype)


if __name__ == "__main__":
    main()
