"""Fit the network that finds scratches to damage painted into photographs, and write its weights.

``python scripts/learn_scratches.py --photos FILE.npz --output FOLDER [--seconds 430] [--steps N]`` needs PyTorch, and
`scripts/scratch_photographs.py` makes the file of photographs; ``--pack FOLDER/scratches.npz`` then puts the weights into
the package. The shipped weights are those of one run with the defaults on one NVIDIA H200: 13,088 steps in 430 seconds. All
random numbers come from seeded generators; with ``--steps 13088`` the same steps are done on any machine, though rounding on
a GPU differs from run to run.
"""

from __future__ import annotations

import argparse
import io
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from scratch_painting import SIDE, Covers, Dice, aged, painted, varied
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

WIDTHS = (32, 40, 48, 64)
"""Channels at a half, a quarter, an eighth and a sixteenth of the size."""
PACKED = Path(__file__).parent.parent / "src" / "pointillist" / "retouch" / "scratches.safetensors"
BATCH = 48
RATE = 4e-3
MEGAPIXELS = {0.2: 0.1, 0.3: 0.42, 0.5: 0.18, 0.9: 0.12, 2.0: 0.18}
"""Sizes that photographs are made smaller to, and the share of crops of each."""


class Layer(nn.Module):
    """A convolution whose answers are normalised while it is fitted."""

    def __init__(self, inputs: int, outputs: int, side: int = 3) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, side, padding=side // 2, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x))

    def folded(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights (outputs, inputs, side, side) and biases of the same convolution without normalisation."""
        factor = self.norm.weight / torch.sqrt(self.norm.running_var + self.norm.eps)
        weights = self.conv.weight * factor[:, None, None, None]
        biases = self.norm.bias - self.norm.running_mean * factor
        return weights.detach().float().cpu().numpy(), biases.detach().float().cpu().numpy()


class Network(nn.Module):
    """From pixels to the log-odds of scratches in light and in dark paint, through four sizes and back."""

    def __init__(self, widths: tuple[int, ...] = WIDTHS) -> None:
        super().__init__()
        self.down, self.keep, self.lift, self.join, self.end = (nn.ModuleList() for _ in range(5))
        for level, width in enumerate(widths):
            self.down.append(Layer(12 if level == 0 else widths[level - 1], width))
            self.keep.append(Layer(width, width))
            if level + 1 < len(widths):
                self.lift.append(Layer(widths[level + 1], width, 1))
                self.join.append(Layer(width, width))
                self.end.append(Layer(width, width))
        self.last = Layer(widths[-1], widths[-1])
        self.head = nn.Conv2d(widths[0], 8, 1)
        nn.init.constant_(self.head.bias, -4.0)

    def forward(self, x: Tensor) -> Tensor:
        x, kept = functional.pixel_unshuffle(x, 2), []
        for level, (down, keep) in enumerate(zip(self.down, self.keep, strict=True)):
            x = functional.relu(down(functional.max_pool2d(x, 2) if level else x))
            x = functional.relu(x + keep(x))
            kept.append(x)
        x = functional.relu(x + self.last(x))
        for level in reversed(range(len(self.lift))):
            up = functional.interpolate(self.lift[level](x), scale_factor=2, mode="nearest")
            x = functional.relu(self.join[level](functional.relu(kept[level] + up)))
            x = functional.relu(x + self.end[level](x))
        return functional.pixel_shuffle(self.head(x), 2)

    def arrays(self) -> dict[str, np.ndarray]:
        """All weights and biases by name."""
        found = {}
        for name, layer in self.named_modules():
            if isinstance(layer, Layer):
                found[f"{name}.weights"], found[f"{name}.biases"] = layer.folded()
        found["head.weights"] = self.head.weight.detach().float().cpu().numpy()
        found["head.biases"] = self.head.bias.detach().float().cpu().numpy()
        return found


class Photographs:
    """Photographs at several sizes as one list of pixels on a device, of which crops are taken.

    Parameters
    ----------
    path : path
        An archive of encoded pictures, by name.
    device : torch.device
    """

    def __init__(self, path: Path, device: torch.device) -> None:
        with np.load(path) as archive:
            coded = [archive[name].tobytes() for name in sorted(archive.files)]
        with ThreadPoolExecutor() as pool:
            sizes = [version for versions in pool.map(_versions, coded) for version in versions]
        share = np.array([MEGAPIXELS[megapixels] for megapixels, _ in sizes])
        count = np.array([sum(other == megapixels for other, _ in sizes) for megapixels, _ in sizes])
        self.odds = torch.tensor(share / count, dtype=torch.float32, device=device)
        shapes = torch.tensor([picture.shape[:2] for _, picture in sizes], device=device)
        self.heights, self.widths = shapes[:, 0], shapes[:, 1]
        areas = self.heights * self.widths
        self.starts = torch.cumsum(areas, 0) - areas
        self.pixels = torch.from_numpy(np.concatenate([picture.reshape(-1, 3) for _, picture in sizes])).to(device)
        self.count = len(coded)

    def crops(self, count: int, dice: Dice) -> Tensor:
        """Crops (count, 3, side, side) from 0 to 1, turned and mirrored at random."""
        which = torch.multinomial(self.odds, count, replacement=True, generator=dice.generator)
        height, width = self.heights[which], self.widths[which]
        top = (dice.uniform(count) * (height - SIDE + 1)).long()
        left = (dice.uniform(count) * (width - SIDE + 1)).long()
        grid = torch.arange(SIDE, device=which.device)
        y, x = grid[None, :, None].expand(count, -1, SIDE), grid[None, None, :].expand(count, SIDE, -1)
        swapped, upside, mirrored = (dice.yes(0.5, count, 1, 1) for _ in range(3))
        y, x = torch.where(swapped, x, y), torch.where(swapped, y, x)
        y, x = torch.where(upside, SIDE - 1 - y, y), torch.where(mirrored, SIDE - 1 - x, x)
        at = (
            self.starts[which][:, None, None]
            + (top[:, None, None] + y) * width[:, None, None]
            + left[:, None, None]
            + x
        )
        return self.pixels[at].permute(0, 3, 1, 2).float() / 255


def _versions(coded: bytes) -> list[tuple[float, np.ndarray]]:
    """A picture at every size that it is large enough for."""
    whole, found = Image.open(io.BytesIO(coded)).convert("RGB"), []
    for megapixels in MEGAPIXELS:
        ratio = np.sqrt(megapixels * 1e6 / (whole.width * whole.height))
        if ratio > 1.15:
            continue
        size = [max(round(n * ratio), SIDE) for n in whole.size] if ratio < 1 else whole.size
        if min(size) >= SIDE:
            found.append((megapixels, np.asarray(whole.resize(size, Image.Resampling.LANCZOS))))
    return found


def fitted(photographs: Photographs, seconds: float, steps: int | None, device: torch.device, output: Path) -> None:
    """Fit for a time or a number of steps, over which the learning rate rises and falls."""
    torch.manual_seed(0)
    dice = Dice(torch.Generator(device).manual_seed(0))
    store = Covers(dice, 512 if device.type == "cuda" else 16)
    network = Network().to(device, memory_format=torch.channels_last)
    mean = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(0.998), use_buffers=True)
    optimiser = torch.optim.AdamW(network.parameters(), lr=1e-3, weight_decay=1e-3)
    print(f"{sum(p.numel() for p in network.parameters())} parameters", flush=True)
    begin, shown, step, share = time.monotonic(), [], 0, 0.0
    while share < 1:
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1.0, (step + 1) / 200) * 0.5 * (1 + np.cos(np.pi * share)) + 1e-6
        with torch.no_grad():
            crops, truth = painted(varied(photographs.crops(BATCH, dice), dice), store, dice)
            crops = aged(crops, dice)
        with torch.autocast(device.type, torch.bfloat16):
            answer = network((crops - 0.5).to(memory_format=torch.channels_last))
        loss = functional.binary_cross_entropy_with_logits(answer.float(), truth.float())
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 0.5)
        optimiser.step()
        mean.update_parameters(network)
        step += 1
        if step % 20 == 1:
            shown.append(loss.item())
        spent = time.monotonic() - begin
        share = spent / seconds if steps is None else step / steps
        if step % 400 == 0 or step in (50, 200):
            print(f"step {step}, {spent:.0f} s, loss {np.mean(shown[-20:]):.5f}", flush=True)
        if step % 4000 == 0 or share >= 1:
            arrays = mean.module.eval().arrays()
            np.savez(output / "scratches.npz", steps=step, photographs=photographs.count, **arrays)
            mean.module.train()
    print(f"{step} steps in {spent:.0f} s, loss {np.mean(shown[-50:]):.5f}", flush=True)


def pack(path: Path) -> None:
    """Write fitted weights into the package, with what they were fitted to."""
    from pointillist.storage import write_arrays  # the machine that fits need not have the package

    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files if "." in name}
        facts = {name: int(archive[name]) for name in ("steps", "photographs")}
    stored = {name: array.astype(np.float32) for name, array in arrays.items() if name.endswith(".biases")}
    for name, array in arrays.items():
        if name.endswith(".weights"):  # whole numbers, with a factor for each output
            factor = np.maximum(np.abs(array).max(axis=(1, 2, 3)), 1e-12) / 127
            stored[name] = np.rint(array / factor[:, None, None, None]).astype(np.int8)
            stored[name.replace(".weights", ".factors")] = factor.astype(np.float32)
    write_arrays(PACKED, "network", {"kind": "scratches", "crops": BATCH * facts["steps"], **facts}, stored)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--photos", type=Path, help="the file of photographs")
    options.add_argument("--output", type=Path, help="the folder that the weights are written to")
    options.add_argument("--seconds", type=float, default=430)
    options.add_argument("--steps", type=int, help="so many steps instead of a time")
    options.add_argument("--pack", type=Path, help="put these weights into the package instead")
    given = options.parse_args()
    if given.pack:
        pack(given.pack)
        return
    if given.photos is None or given.output is None:
        options.error("--photos and --output are needed, or --pack")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.benchmark = True
    begin = time.monotonic()
    photographs = Photographs(given.photos, device)
    spent = time.monotonic() - begin
    print(f"{photographs.count} photographs, {len(photographs.pixels) / 1e6:.0f} megapixels, read in {spent:.0f} s")
    fitted(photographs, given.seconds, given.steps, device, given.output)


if __name__ == "__main__":
    main()
