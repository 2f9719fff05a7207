"""Scratches and hairs painted into crops of photographs, many at a time, with PyTorch.

The rules are those of `benchmarks.painted`, made broader: wider lines, broken and tapered ones, coloured paint, and noise,
blur and JPEG after the damage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

SIDE = 256
"""Rows and columns of a crop."""
VISIBLE = 0.04
"""A pixel counts as damaged when the paint changed one of its channels by more than this part of full scale."""
_POINTS = 56  # of a centre line
_ODDS = (0.95, 0.6, 0.35, 0.2)  # that a crop has a first scratch, a second one, and so on
_LUMA = (
    16, 11, 10, 16, 24, 40, 51, 61, 12, 12, 14, 19, 26, 58, 60, 55, 14, 13, 16, 24, 40, 57, 69, 56,
    14, 17, 22, 29, 51, 87, 80, 62, 18, 22, 37, 56, 68, 109, 103, 77, 24, 35, 55, 64, 81, 104, 113, 92,
    49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98, 112, 100, 103, 99,
)  # fmt: skip
_CHROMA = (
    17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99, 99, 99,
    47, 66, 99, 99, 99, 99, 99, 99, *(99,) * 32,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Dice:
    """Random numbers of one generator on its device."""

    generator: torch.Generator

    def uniform(self, *shape: int, low: float = 0.0, high: float = 1.0) -> Tensor:
        made = torch.rand(shape, generator=self.generator, device=self.generator.device)
        return low + (high - low) * made

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self.generator, device=self.generator.device)

    def yes(self, probability: float, *shape: int) -> Tensor:
        return self.uniform(*shape) < probability

    def integers(self, high: int, *shape: int) -> Tensor:
        return torch.randint(high, shape, generator=self.generator, device=self.generator.device)

    def one_of(self, values: tuple[float, ...], *shape: int) -> Tensor:
        return torch.tensor(values, device=self.generator.device)[self.integers(len(values), *shape)]


def varied(crops: Tensor, dice: Dice) -> Tensor:
    """Crops (crops, 3, side, side) from 0 to 1 with other exposures, and some with other colours or none at all."""
    count = len(crops)
    one = (count, 1, 1, 1)
    gamma = torch.where(dice.yes(0.6, *one), torch.exp(0.3 * dice.normal(*one)), 1.0)
    low, high = dice.uniform(*one, low=-0.1, high=0.12), dice.uniform(*one, low=0.8, high=1.1)
    stretched = low + (high - low) * crops.clamp(1e-4, 1) ** gamma
    crops = torch.where(dice.yes(0.6, *one), stretched, crops)
    crops = torch.where(dice.yes(0.2, *one), crops[:, torch.randperm(3)], crops)
    crops = crops + torch.where(dice.yes(0.3, *one), 0.05 * dice.normal(count, 3, 1, 1), 0.0)
    grey = crops.mean(dim=1, keepdim=True).expand_as(crops)
    return torch.where(dice.yes(0.2, *one), grey, crops).clamp(0, 1)


def curves(count: int, dice: Dice) -> Tensor:
    """Centre lines (count, points, 2) through a pixel of the crop, and their lengths in pixels (count,)."""
    side = torch.exp(dice.uniform(count, low=math.log(330), high=math.log(1400)))
    length = side * torch.exp(dice.uniform(count, low=math.log(1 / 14), high=math.log(1 / 2)))
    bend = torch.where(dice.yes(0.3, count), 0.0, dice.one_of((0.5, 1.5, 4.0, 0.5, 1.5, 4.0, 8.0), count))
    knots = dice.uniform(count, 1, 5, low=-1, high=1)
    rate = functional.interpolate(knots, _POINTS, mode="linear", align_corners=True)[:, 0]
    angle = dice.uniform(count, 1, high=2 * math.pi) + torch.cumsum(bend[:, None] * rate / _POINTS, dim=1)
    step = (length / _POINTS)[:, None]
    line = torch.stack([torch.cumsum(step * torch.sin(angle), 1), torch.cumsum(step * torch.cos(angle), 1)], dim=-1)
    through = line[torch.arange(count, device=line.device), dice.integers(_POINTS, count)]
    return line - through[:, None] + dice.uniform(count, 1, 2, high=SIDE)


def covers(count: int, dice: Dice) -> Tensor:
    """How much of each pixel a scratch covers, (count, side, side)."""
    line = curves(count, dice)
    grid = torch.arange(SIDE, device=line.device, dtype=torch.float32)
    y, x = grid[None, :, None], grid[None, None, :]
    nearest = torch.full((count, SIDE, SIDE), 1e9, device=line.device)
    along = torch.zeros_like(nearest)
    for number in range(_POINTS - 1):
        y0, x0 = (line[:, number, axis, None, None] for axis in (0, 1))
        dy, dx = (line[:, number + 1, axis, None, None] - line[:, number, axis, None, None] for axis in (0, 1))
        share = (((y - y0) * dy + (x - x0) * dx) / (dy * dy + dx * dx + 1e-9)).clamp(0, 1)
        apart = (y - y0 - share * dy) ** 2 + (x - x0 - share * dx) ** 2
        along = torch.where(apart < nearest, number + share, along)
        nearest = torch.minimum(apart, nearest)
    along, one = along / (_POINTS - 1), (count, 1, 1)
    width = torch.where(dice.yes(0.8, *one), dice.uniform(*one, low=1, high=6.5), dice.uniform(*one, low=0.7, high=12))
    taper = torch.where(dice.yes(0.2, *one), (6 * torch.minimum(along, 1 - along)).clamp(0.25, 1), 1.0)
    soft = torch.where(dice.yes(0.85, *one), dice.uniform(*one, low=0.15, high=0.8), dice.uniform(*one, high=1.6))
    blur = torch.sqrt(soft**2 + 0.11)
    apart, half = torch.sqrt(nearest), width * taper / 2
    cover = torch.special.ndtr((half - apart) / blur) - torch.special.ndtr((-half - apart) / blur)
    waves = sum(dice.normal(*one) * torch.cos(k * along * 2 * math.pi + dice.uniform(*one, high=7)) for k in (1, 2, 4))
    modulated = (1 + 0.16 * waves).clamp(0.5, 1)
    phase = dice.uniform(*one, low=3, high=60) * along + dice.uniform(*one, high=7)
    gaps = torch.where(dice.yes(0.12, *one), (2 + 4 * torch.cos(phase)).clamp(0, 1), 1.0)
    return cover * modulated * gaps


class Covers:
    """A store of covers that is renewed by and by; each is used about three times, turned and mirrored at random.

    Parameters
    ----------
    dice : Dice
    count : int
        Covers in store; a quarter of them is renewed at every fourth draw.
    """

    def __init__(self, dice: Dice, count: int = 512) -> None:
        self.dice, self.part, self.draws = dice, count // 4, 0
        self.store = torch.cat([covers(self.part, dice).half() for _ in range(4)])

    def draw(self, count: int) -> Tensor:
        """So many covers (count, side, side)."""
        if self.draws % 4 == 3:
            first = self.draws // 4 % 4 * self.part
            self.store[first : first + self.part] = covers(self.part, self.dice).half()
        self.draws += 1
        chosen = self.store[self.dice.integers(len(self.store), count)].float()
        for turn in (lambda a: a.transpose(1, 2), lambda a: a.flip(1), lambda a: a.flip(2)):
            chosen = torch.where(self.dice.yes(0.5, count, 1, 1), turn(chosen), chosen)
        return chosen


def _one_each(crops: Tensor, cover: Tensor, dice: Dice) -> tuple[Tensor, Tensor, Tensor]:
    """Paint one scratch into each crop: the crops, where they changed, and whether the paint is light."""
    count = len(crops)
    weights = cover + 1e-9
    tone = (crops.mean(dim=1) * weights).sum(dim=(1, 2)) / weights.sum(dim=(1, 2))
    wide = dice.yes(0.25, count)
    contrast = torch.where(wide, dice.uniform(count, low=0.1, high=0.9), dice.uniform(count, low=0.15, high=0.6))
    middle = (tone > 0.15) & (tone < 0.85)
    light = torch.where(middle, dice.yes(0.5, count), tone < 0.5)
    level = torch.where(light, dice.uniform(count, low=0.85, high=1), dice.uniform(count, high=0.15))
    tint = torch.where(dice.yes(0.15, count), 0.12, 0.02)[:, None] * dice.normal(count, 3)
    paint = (level[:, None] + tint).clamp(0, 1)
    opacity = (contrast / (paint.mean(dim=1) - tone).abs().clamp(min=0.05)).clamp(max=1)
    opacity = opacity / cover.amax(dim=(1, 2)).clamp(min=1e-3)
    share = (opacity[:, None, None] * cover).clamp(max=1)[:, None]
    mixed = crops + share * (paint[:, :, None, None] - crops)
    changed = (mixed - crops).abs().amax(dim=1) > VISIBLE
    return mixed, changed, light


def painted(crops: Tensor, store: Covers, dice: Dice) -> tuple[Tensor, Tensor]:
    """Crops with scratches, and where these are: (crops, 2, side, side), in light paint and in dark paint."""
    crops, count = crops.clone(), len(crops)
    truth = torch.zeros(count, 2, SIDE, SIDE, dtype=torch.bool, device=crops.device)
    odds = torch.tensor(_ODDS, device=crops.device)[:, None]
    slots, owners = torch.nonzero((dice.uniform(len(_ODDS), count) < odds) & ~dice.yes(0.12, count), as_tuple=True)
    cover = store.draw(len(slots))
    for slot in range(len(_ODDS)):
        chosen = owners[slots == slot]
        if len(chosen) == 0:
            continue
        mixed, changed, light = _one_each(crops[chosen], cover[slots == slot], dice)
        crops[chosen] = mixed
        own = truth[chosen] & ~changed[:, None]
        own |= changed[:, None] & torch.stack([light, ~light], dim=1)[:, :, None, None]
        truth[chosen] = own
    return crops, truth


def aged(crops: Tensor, dice: Dice) -> Tensor:
    """Some of the crops with blur, noise and JPEG, and all in whole steps of 1 / 255."""
    one = (len(crops), 1, 1, 1)
    kernel = torch.tensor([0.06, 0.24, 0.4, 0.24, 0.06], device=crops.device)
    kernel = (kernel[:, None] * kernel).expand(3, 1, 5, 5)
    blurred = functional.conv2d(functional.pad(crops, (2, 2, 2, 2), mode="replicate"), kernel, groups=3)
    crops = torch.where(dice.yes(0.08, *one), blurred, crops)
    grain = dice.uniform(*one, high=0.03) * dice.normal(*crops.shape)
    crops = torch.where(dice.yes(0.2, *one), crops + grain, crops).clamp(0, 1)
    chosen = torch.nonzero(dice.yes(0.3, len(crops)))[:, 0]
    if len(chosen):
        crops[chosen] = compressed(crops[chosen], dice.uniform(len(chosen), low=60, high=97))
    return torch.round(crops.clamp(0, 1) * 255) / 255


def compressed(crops: Tensor, quality: Tensor) -> Tensor:
    """Crops as JPEG of such qualities (crops,) shows them, with half of the colours' resolution."""
    to_luma = torch.tensor(
        [[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]], device=crops.device
    )
    planes = (
        torch.einsum("ij,bjyx->biyx", to_luma, crops * 255)
        - 128 * (torch.arange(3, device=crops.device) == 0)[:, None, None]
    )
    scale = torch.where(quality < 50, 5000 / quality, 200 - 2 * quality)
    halved = functional.avg_pool2d(planes[:, 1:], 2)
    luma = _quantised(planes[:, :1], _LUMA, scale)
    chroma = functional.interpolate(_quantised(halved, _CHROMA, scale), scale_factor=2, mode="bilinear")
    back = torch.cat([luma + 128, chroma], dim=1)
    return (torch.einsum("ij,bjyx->biyx", torch.linalg.inv(to_luma), back) / 255).clamp(0, 1)


def _quantised(planes: Tensor, table: tuple[int, ...], scale: Tensor) -> Tensor:
    count, channels, height, width = planes.shape
    k = torch.arange(8, device=planes.device, dtype=torch.float32)
    basis = torch.cos(math.pi * k[:, None] * (2 * k + 1) / 16) * 0.5
    basis[0] /= math.sqrt(2)
    steps = torch.tensor(table, device=planes.device, dtype=torch.float32).reshape(8, 8)
    steps = ((steps * scale[:, None, None] + 50) / 100).floor().clamp(1, 255)[:, None, None, None]
    blocks = planes.reshape(count, channels, height // 8, 8, width // 8, 8).transpose(3, 4)
    spectrum = basis @ blocks @ basis.T
    blocks = basis.T @ (torch.round(spectrum / steps) * steps) @ basis
    return blocks.transpose(3, 4).reshape(planes.shape)
