// What was painted over, as a list of steps in the photograph's coordinates, with undo and redo.
// The server draws the same steps at full resolution; here they are drawn for the eye only.

const COLOUR = "#ff2bd6";
const OTHER = "#00d060";
const ALIKE = ["magenta", "red"];
const OPACITY = 0.55;

export class Marks {
  constructor(changed) {
    this.changed = changed;
    this.overlay = document.createElement("canvas");
    this.found = new Map();
    this.colour = COLOUR;
    this.steps = [];
    this.undone = [];
  }

  reset() {
    this.steps = [];
    this.undone = [];
    this.found.clear();
    this.colour = COLOUR;
    this.changed();
  }

  get isEmpty() {
    return this.steps.length === 0 || this.steps.at(-1).kind === "clear";
  }

  /** The steps that matter: those after the last clearing. */
  get current() {
    return this.steps.slice(this.steps.findLastIndex(step => step.kind === "clear") + 1);
  }

  add(step) {
    this.steps.push(step);
    this.undone = [];
    this.changed();
    return step;
  }

  extend(step, x, y) {
    const [lastX, lastY] = step.points.slice(-2);
    if (Math.hypot(x - lastX, y - lastY) < Math.max(0.15 * step.radius, 0.25)) return;
    step.points.push(round(x), round(y));
    this.changed();
  }

  begin(kind, radius, x, y) {
    return this.add({ kind, radius: round(radius), points: [round(x), round(y)] });
  }

  replace(step, other) {
    this.steps = this.steps.map(one => one === step ? other : one);
    this.changed();
  }

  /** Say in what colour the photograph itself is marked, so that the painting looks different. */
  tell(colour) {
    this.colour = ALIKE.includes(colour) ? OTHER : COLOUR;
  }

  drop(step) {
    this.steps = this.steps.filter(one => one !== step);
    this.changed();
  }

  undo() {
    if (this.steps.length) this.undone.push(this.steps.pop());
    this.changed();
  }

  redo() {
    if (this.undone.length) this.steps.push(this.undone.pop());
    this.changed();
  }

  clear() {
    if (!this.isEmpty) this.add({ kind: "clear" });
  }

  /** Draw over the photograph; `place` puts a context's units onto the photograph's pixels. */
  draw(context, place, scale) {
    if (this.isEmpty) return;
    const { width, height } = context.canvas;
    if (this.overlay.width !== width || this.overlay.height !== height) Object.assign(this.overlay, { width, height });
    const over = this.overlay.getContext("2d");
    over.setTransform(1, 0, 0, 1, 0, 0);
    over.clearRect(0, 0, width, height);
    place(over);
    for (const step of this.current) this.#step(over, step, scale);
    over.setTransform(1, 0, 0, 1, 0, 0);
    over.globalCompositeOperation = "source-in";
    over.fillStyle = this.colour;
    over.fillRect(0, 0, width, height);
    over.globalCompositeOperation = "source-over";
    context.save();
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.globalAlpha = OPACITY;
    context.drawImage(this.overlay, 0, 0);
    context.restore();
  }

  #step(over, step, scale) {
    if (step.kind === "found") {
      this.found.get(step.id)?.draw(over, scale);
      return;
    }
    over.globalCompositeOperation = step.kind === "erase" ? "destination-out" : "source-over";
    over.lineWidth = 2 * step.radius;
    over.lineCap = over.lineJoin = "round";
    over.beginPath();
    over.moveTo(step.points[0], step.points[1]);
    if (step.points.length === 2) over.lineTo(step.points[0], step.points[1] + 1e-3);
    for (let i = 2; i < step.points.length; i += 2) over.lineTo(step.points[i], step.points[i + 1]);
    over.stroke();
    over.globalCompositeOperation = "source-over";
  }
}

const round = value => Math.round(100 * value) / 100;
