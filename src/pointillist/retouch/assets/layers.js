// One picture as the stage shows it: a small preview of the whole, and a sharp crop of what is visible when zoomed in.

import { view } from "./server.js";

const PREVIEW = 2048;
const MARGIN = 0.15;

export class Layer {
  /** `of` and `version` name it to the server; `across` is the width of the photograph that it lies on, in its pixels. */
  constructor(of, { version, width, height }, across, changed) {
    Object.assign(this, { of, version, width, height, changed });
    this.density = width / across;
    this.previewScale = Math.min(1, PREVIEW / Math.max(width, height));
    this.whole = { x: 0, y: 0, w: width, h: height };
    this.preview = null;
    this.crop = null;
    this.wanted = "";
  }

  async load() {
    this.preview = await view(this.of, this.version, this.whole, this.previewScale);
    this.changed();
    return this;
  }

  /** Fetch what is visible, given in the photograph's pixels, if the preview is too coarse for `scale` screen pixels each. */
  async sharpen(visible, scale) {
    const needed = Math.min(1, scale / this.density);
    if (needed <= this.previewScale * 1.05) return;
    const box = this.#box(visible);
    const key = JSON.stringify([box, needed]);
    if (box.w < 1 || box.h < 1 || key === this.wanted) return;
    this.wanted = key;
    const bitmap = await view(this.of, this.version, box, needed);
    if (key !== this.wanted) return;
    this.crop = { bitmap, box };
    this.changed();
  }

  #box({ x, y, w, h }) {
    const d = this.density;
    const left = Math.max(0, Math.floor((x - MARGIN * w) * d));
    const top = Math.max(0, Math.floor((y - MARGIN * h) * d));
    const right = Math.min(this.width, Math.ceil((x + (1 + MARGIN) * w) * d));
    const bottom = Math.min(this.height, Math.ceil((y + (1 + MARGIN) * h) * d));
    return { x: left, y: top, w: right - left, h: bottom - top };
  }

  /** Draw on a context whose units are the photograph's pixels. */
  draw(context, scale) {
    const d = this.density;
    context.imageSmoothingEnabled = scale / d < 3;
    context.imageSmoothingQuality = "high";
    const crop = scale / d > this.previewScale * 1.05 ? this.crop : null;
    context.save();
    if (crop) {
      // Not under the crop: what is half transparent must not be drawn twice.
      context.beginPath();
      context.rect(0, 0, this.width / d, this.height / d);
      context.rect(...this.#corners(crop.box));
      context.clip("evenodd");
    }
    if (this.preview) context.drawImage(this.preview, 0, 0, this.width / d, this.height / d);
    context.restore();
    if (crop) context.drawImage(crop.bitmap, ...this.#corners(crop.box));
  }

  #corners({ x, y, w, h }) {
    return [x, y, w, h].map(value => value / this.density);
  }
}
