// The canvas: where the photograph lies on it (zoom and pan), what is drawn, and what pointers and keys do there.

import { Marks } from "./marks.js";

const MARGIN = 16;
const SETTLED = 140;
const CLOSEST = 32;

export class Stage {
  /**
   * `brush()` gives the tool ("paint", "erase" or "move"), the radius in the photograph's pixels, whether one may paint now
   * and whether what was painted is shown; `onView` and `onMarks` are called when these have changed.
   */
  constructor(canvas, { brush, onView, onMarks }) {
    Object.assign(this, { canvas, brush, onView });
    this.context = canvas.getContext("2d");
    this.before = this.after = null;
    this.split = 0.5;
    this.scale = 1;
    this.x = this.y = 0; // of the photograph's corner, in CSS pixels
    this.fitted = true;
    this.pointers = new Map();
    this.gesture = null;
    this.hover = null;
    this.pen = null; // the brush that keys move
    this.held = false; // Space as a grip
    this.marks = new Marks(() => { this.redraw(); onMarks(); });
    new ResizeObserver(() => this.#resize()).observe(canvas);
    this.#listen();
  }

  get size() {
    return { width: this.canvas.clientWidth, height: this.canvas.clientHeight };
  }

  get ratio() {
    return window.devicePixelRatio || 1;
  }

  show(before, after = null) {
    const other = this.before?.version !== before?.version;
    Object.assign(this, { before, after });
    if (other) {
      this.pen = null;
      this.fit();
    } else {
      this.#moved();
    }
  }

  fit() {
    if (!this.before) return;
    const { width, height } = this.size;
    const { width: w, height: h } = this.before;
    this.scale = Math.min((width - 2 * MARGIN) / w, (height - 2 * MARGIN) / h, CLOSEST);
    this.x = (width - this.scale * w) / 2;
    this.y = (height - this.scale * h) / 2;
    this.fitted = true;
    this.#moved();
  }

  /** Zoom so that the point (x, y) of the canvas stays where it is. */
  zoom(factor, x = this.size.width / 2, y = this.size.height / 2) {
    if (!this.before) return;
    const least = Math.min(1, 0.5 * Math.min(this.size.width / this.before.width, this.size.height / this.before.height));
    const scale = Math.min(CLOSEST, Math.max(least, this.scale * factor));
    this.x = x - (x - this.x) * scale / this.scale;
    this.y = y - (y - this.y) * scale / this.scale;
    this.scale = scale;
    this.fitted = false;
    this.#moved();
  }

  pan(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.fitted = false;
    this.#moved();
  }

  /** The edges of what is visible of the photograph, in CSS pixels. */
  get visible() {
    const { width, height } = this.size;
    const { width: w, height: h } = this.before ?? this.size;
    return {
      left: Math.max(0, this.x),
      top: Math.max(0, this.y),
      right: Math.min(width, this.x + this.scale * w),
      bottom: Math.min(height, this.y + this.scale * h),
    };
  }

  get splitAt() {
    const { left, right } = this.visible;
    return left + this.split * (right - left);
  }

  setSplit(fraction) {
    this.split = Math.min(1, Math.max(0, fraction));
    this.redraw();
    this.onView();
  }

  redraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { this.waiting = false; this.#draw(); });
  }

  #resize() {
    const { width, height } = this.size;
    if (!width || !height) return;
    Object.assign(this.canvas, { width: Math.round(width * this.ratio), height: Math.round(height * this.ratio) });
    if (this.fitted) this.fit();
    else this.#moved();
  }

  /** Keep some of the photograph in sight, draw, and fetch sharper parts once it rests. */
  #moved() {
    if (this.before) {
      const { width, height } = this.size;
      const [w, h] = [this.scale * this.before.width, this.scale * this.before.height];
      this.x = Math.min(width - Math.min(w, 60), Math.max(Math.min(w, 60) - w, this.x));
      this.y = Math.min(height - Math.min(h, 60), Math.max(Math.min(h, 60) - h, this.y));
    }
    this.redraw();
    this.onView();
    clearTimeout(this.resting);
    this.resting = setTimeout(() => this.sharpen(), SETTLED);
  }

  sharpen() {
    const { width, height } = this.size;
    const visible = { x: -this.x / this.scale, y: -this.y / this.scale, w: width / this.scale, h: height / this.scale };
    for (const layer of [this.before, this.after, ...this.marks.found.values()]) {
      layer?.sharpen(visible, this.scale * this.ratio).catch(() => {}); // the preview is there; the next move asks again
    }
  }

  #place = context => {
    const s = this.ratio * this.scale;
    context.setTransform(s, 0, 0, s, this.ratio * this.x, this.ratio * this.y);
  };

  #draw() {
    const { context } = this;
    if (!this.before || !this.canvas.width || !this.canvas.height) return;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    const scale = this.scale * this.ratio;
    this.#place(context);
    this.before.draw(context, scale);
    if (this.after) {
      const from = (this.splitAt - this.x) / this.scale;
      context.save();
      context.beginPath();
      context.rect(from, 0, this.before.width - from, this.before.height);
      context.clip();
      context.clearRect(from, 0, this.before.width - from, this.before.height);
      this.after.draw(context, scale);
      context.restore();
    } else if (this.brush().marked) {
      this.marks.draw(context, this.#place, scale);
      this.#ring();
    }
  }

  /** A ring as large as the brush, where the pointer or the keys' brush is. */
  #ring() {
    const { painting, tool, radius } = this.brush();
    const at = this.pen ?? this.hover;
    if (!at || !painting || tool === "move" || this.held) return;
    const { context } = this;
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    for (const [colour, width] of [["#000a", 3], ["#fff", 1.3]]) {
      context.beginPath();
      context.arc(this.x + at.x * this.scale, this.y + at.y * this.scale, Math.max(radius * this.scale, 2), 0, 7);
      context.lineWidth = width;
      context.strokeStyle = colour;
      context.stroke();
    }
  }

  #toPicture({ offsetX, offsetY }) {
    return { x: (offsetX - this.x) / this.scale, y: (offsetY - this.y) / this.scale };
  }

  #listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", event => this.#down(event));
    canvas.addEventListener("pointermove", event => this.#move(event));
    for (const kind of ["pointerup", "pointercancel"]) canvas.addEventListener(kind, event => this.#up(event));
    canvas.addEventListener("pointerleave", () => { this.hover = null; this.redraw(); });
    canvas.addEventListener("wheel", event => {
      event.preventDefault();
      const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 20 : 1;
      this.zoom(Math.exp(-Math.max(-300, Math.min(300, event.deltaY * lines)) * (event.ctrlKey ? 0.01 : 0.002)), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("keydown", event => this.#key(event));
    canvas.addEventListener("blur", () => { this.pen = null; this.#cursor(); this.redraw(); });
  }

  #cursor() {
    const { painting, tool } = this.brush();
    this.canvas.style.cursor = painting && tool !== "move" && !this.held ? "none" : this.gesture ? "grabbing" : "grab";
  }

  #down(event) {
    if (!this.before) return;
    this.canvas.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    this.pen = null;
    if (this.pointers.size === 2) {
      // The first finger of a pinch has painted a little already.
      if (this.gesture?.step && this.gesture.step.points.length < 12) this.marks.drop(this.gesture.step);
      this.gesture = { pinch: true };
      return;
    }
    const { painting, tool, radius } = this.brush();
    const paints = painting && tool !== "move" && !this.held && event.button === 0 && this.pointers.size === 1;
    const { x, y } = this.#toPicture(event);
    this.gesture = paints ? { step: this.marks.begin(tool, radius, x, y) } : { pan: true };
    this.#cursor();
  }

  #move(event) {
    this.hover = event.pointerType === "touch" ? null : this.#toPicture(event);
    const last = this.pointers.get(event.pointerId);
    if (last) {
      if (this.gesture?.step) {
        const all = event.getCoalescedEvents?.() ?? [];
        const { x: left, y: top } = this.canvas.getBoundingClientRect();
        for (const one of all.length ? all : [event]) {
          const { x, y } = this.#toPicture({ offsetX: one.clientX - left, offsetY: one.clientY - top });
          this.marks.extend(this.gesture.step, x, y);
        }
      } else if (this.gesture?.pan) {
        this.pan(event.offsetX - last.x, event.offsetY - last.y);
      } else if (this.gesture?.pinch && this.pointers.size === 2) {
        this.#pinch(event);
      }
      this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    }
    this.#cursor();
    this.redraw();
  }

  #pinch(event) {
    const [still] = [...this.pointers].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
    const was = this.pointers.get(event.pointerId);
    const span = point => Math.hypot(point.x - still.x, point.y - still.y);
    const now = { x: event.offsetX, y: event.offsetY };
    this.zoom(span(now) / Math.max(span(was), 1), (was.x + still.x) / 2, (was.y + still.y) / 2);
    this.pan((now.x - was.x) / 2, (now.y - was.y) / 2);
  }

  #up(event) {
    this.pointers.delete(event.pointerId);
    if (this.pointers.size === 0) this.gesture = null;
    this.#cursor();
  }

  /** Arrows move the brush, or the photograph where nothing is painted; Space sets the brush down and lifts it. */
  #key(event) {
    const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const { painting, tool, radius } = this.brush();
    const brushing = painting && tool !== "move";
    if (event.key in arrows) {
      const [dx, dy] = arrows[event.key];
      if (brushing && !event.shiftKey) this.#movePen(dx, dy, radius);
      else this.pan(-60 * dx, -60 * dy);
    } else if (event.key === " " && brushing && this.pen && !event.repeat) {
      this.pen.step = this.pen.step ? null : this.marks.begin(tool, radius, this.pen.x, this.pen.y);
    } else {
      return;
    }
    event.preventDefault();
  }

  #movePen(dx, dy, radius) {
    const { width, height } = this.size;
    this.pen ??= { x: (width / 2 - this.x) / this.scale, y: (height / 2 - this.y) / this.scale, step: null };
    const stride = Math.max(radius, 4 / this.scale);
    this.pen.x = Math.min(this.before.width, Math.max(0, this.pen.x + dx * stride));
    this.pen.y = Math.min(this.before.height, Math.max(0, this.pen.y + dy * stride));
    if (this.pen.step) this.marks.extend(this.pen.step, this.pen.x, this.pen.y);
    const [x, y] = [this.x + this.pen.x * this.scale, this.y + this.pen.y * this.scale];
    if (x < 20 || y < 20 || x > width - 20 || y > height - 20) this.pan(-dx * width / 4, -dy * height / 4);
    this.redraw();
  }
}
