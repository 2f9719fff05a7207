// The page: what is shown when, what buttons do, and the state that it shares with the server.

import { Layer } from "./layers.js";
import * as server from "./server.js";
import { Stage } from "./stage.js";

const $ = id => document.getElementById(id);
const form = $("form");
const chosen = name => form.elements[name].value;
const POLL = 250;
const DOING = { mend: "Mending…", find: "Looking for damage…", marks: "Looking at coloured marks…", estimate: "Estimating the blur…" };
const DONE = { inpaint: "Filled in", denoise: "Noise removed", deblur: "Sharpened", super_resolve: "Enlarged" };

let shown = { picture: null, result: null, found: {}, marks: null, job: null };
let polling = null;
let queue = Promise.resolve();

const stage = new Stage($("canvas"), { brush, onView: placeDivider, onMarks: showMarks });

function brush() {
  const marked = chosen("task") === "inpaint";
  const painting = marked && document.body.dataset.mode === "edit";
  return { marked, painting, tool: chosen("tool"), radius: diameter() / 2 };
}

/** The brush's size in the photograph's pixels: finer steps for small brushes. */
function diameter() {
  return Math.max(1, Math.round(largestBrush() ** ($("size").value / 100)));
}

function largestBrush() {
  const { width, height } = shown.picture ?? { width: 500, height: 500 };
  return Math.max(20, Math.max(width, height) / 5);
}

function setMode(mode) {
  document.body.dataset.mode = mode;
  stage.redraw();
}

function complain(error) {
  $("message").hidden = false;
  $("message").firstElementChild.textContent = error.message ?? String(error);
}

const hush = () => { $("message").hidden = true; };

/** Do something once all before it is done; what goes wrong is said on the page. */
function attempt(action) {
  queue = queue.then(action).catch(complain);
  return queue;
}

const doing = action => event => {
  event.preventDefault();
  hush();
  return attempt(action);
};

/** Take over what the server says, and load what is new. */
async function take(state) {
  const before = shown;
  shown = state;
  const { picture, result } = state;
  if (!picture) return setMode("empty");
  const redraw = () => stage.redraw();
  const fresh = picture.version !== before.picture?.version;
  const first = fresh ? new Layer("before", picture, picture.width, redraw) : stage.before;
  const second = !result ? null
    : result.version === before.result?.version && stage.after ? stage.after
    : new Layer("after", result, picture.width, redraw);
  if (fresh) {
    stage.marks.reset();
    describePicture(picture);
    await first.load();
  }
  const arrived = second !== null && second !== stage.after;
  if (arrived) await second.load();
  setMode(runs(state.job) ? "busy" : second ? "result" : "edit");
  stage.show(first, second);
  if (arrived) showResult(result, state.job);
  if (state.marks && !stage.marks.found.has(state.marks.id)) await takeMarks(state);
  if (runs(state.job)) follow();
}

const runs = job => job?.state === "running" || job?.state === "stopping";

function describePicture(picture) {
  const name = document.createElement("b");
  name.textContent = picture.name;
  $("name").replaceChildren(name, ` · ${picture.width} × ${picture.height}`);
  document.body.dataset.version = picture.version;
  document.title = `${picture.name} – Pointillist`;
  $("canvas").setAttribute("aria-label", `Photograph ${picture.name}, ${picture.width} by ${picture.height} pixels`);
  $("enlarged").textContent = `${picture.width} × ${picture.height} pixels become ${2 * picture.width} × ${2 * picture.height}.`;
  $("notes").replaceChildren(...picture.notes.map(text => Object.assign(document.createElement("li"), { textContent: text })));
  const typical = Math.max(6, Math.max(picture.width, picture.height) / 120);
  $("size").value = Math.round(100 * Math.log(typical) / Math.log(largestBrush()));
  showValues();
}

function showResult(result, job) {
  $("done-title").textContent = DONE[result.task];
  const took = job?.state === "done" ? ` in ${job.seconds.toFixed(1)} s` : "";
  $("done-text").textContent = `${result.width} × ${result.height} pixels${took}. Drag the knob to compare.`;
  $("done-name").textContent = `${result.name}, with the metadata of the original.`;
  stage.setSplit(0.5);
  $("done-title").focus({ preventScroll: true });
}

/** Ask now and then how the work is going, until it ends. */
function follow() {
  clearTimeout(polling);
  setMode("busy");
  showProgress(shown.job);
  polling = setTimeout(() => attempt(async () => {
    const state = await server.state();
    if (runs(state.job)) begin(state);
    else await finish(state);
  }), POLL);
}

function begin({ job }) {
  shown = { ...shown, job };
  follow();
}

async function finish(state) {
  const known = shown.found;
  await take(state);
  const { what, state: end, error } = state.job;
  if (end === "failed") return complain(new Error(error));
  if (end !== "done") return;
  if (what === "find") await takeFound(Object.keys(state.found).find(id => !(id in known)), state);
  if (what === "estimate") takeEstimate(state.estimate);
}

/** What was found takes the place of what was found before; what was erased of it stays erased. */
async function takeFound(id, state) {
  if (id === undefined) return;
  const earlier = stage.marks.current.find(step => step.kind === "found" && step.id !== state.marks?.id);
  if (state.found[id] === 0) {
    if (earlier) stage.marks.drop(earlier);
    say("Nothing was found. Paint over what you see.");
    return;
  }
  await showFound(id, state);
  if (earlier) stage.marks.replace(earlier, { kind: "found", id: +id });
  else stage.marks.add({ kind: "found", id: +id });
  stage.sharpen();
  say(`Found ${state.found[id].toLocaleString("en")} pixels. Correct them with brush and eraser.`);
}

/** Marks that the photograph came with are painted over already, and are shown in a colour that differs from theirs. */
async function takeMarks(state) {
  const { id, colour } = state.marks;
  await showFound(id, state);
  stage.marks.tell(colour);
  stage.marks.add({ kind: "found", id });
  stage.sharpen();
  say(`Marks in ${colour} were found: ${state.found[id].toLocaleString("en")} pixels. Correct them with brush and eraser, or clear them.`);
}

/** Put a sentence under the painting tools, in sight on a phone too. */
function say(sentence) {
  $("painted").textContent = sentence;
  $("painted").scrollIntoView({ block: "nearest" });
}

async function showFound(id, { picture: { width, height } }) {
  const layer = new Layer(String(id), { version: id, width, height }, width, () => stage.redraw());
  stage.marks.found.set(+id, await layer.load());
}

function takeEstimate(found) {
  for (const [name, value] of Object.entries(found)) $(`blur-${name}`).value = name === "angle" ? (value + 180) % 180 : value;
  showValues();
}

function showProgress(job) {
  if (!job) return;
  const title = job.state === "stopping" ? "Stopping…" : DOING[job.what];
  if ($("busy-title").textContent !== title) $("busy-title").textContent = title;
  $("cancel").disabled = job.state === "stopping";
  if (job.fraction > 0) $("progress").value = job.fraction;
  else $("progress").removeAttribute("value");
  const percent = `${Math.round(100 * job.fraction)} %`;
  if (job.compiling) $("left").textContent = "Compiling for this machine: some seconds, only the first time.";
  else if (job.fraction < 0.02 || job.seconds < 1) $("left").textContent = `${job.seconds.toFixed(0)} s so far.`;
  else $("left").textContent = `${percent}, about ${duration(job.seconds * (1 - job.fraction) / job.fraction)} left.`;
}

const duration = seconds => seconds < 90 ? `${Math.max(1, Math.round(seconds))} s` : `${Math.round(seconds / 60)} min`;

function showMarks() {
  const { marks } = stage;
  $("undo").disabled = marks.steps.length === 0;
  $("redo").disabled = marks.undone.length === 0;
  $("clear").disabled = marks.isEmpty;
  const strokes = marks.current.filter(step => step.kind !== "found").length;
  $("painted").textContent = marks.isEmpty ? "Nothing is painted yet." : `${strokes} ${strokes === 1 ? "stroke" : "strokes"}. What is not painted over stays as it is.`;
}

function showValues() {
  $("size-value").textContent = `${diameter()} px`;
  $("sensitivity-value").textContent = ["only what is certain", "less", "usual", "more", "much more"][Math.round(4 * $("sensitivity").value)];
  $("grain-value").textContent = (+$("grain").value).toFixed(1);
  $("sigma-value").textContent = $("measure").checked ? "measured" : $("sigma").value;
  $("sigma").disabled = $("measure").checked;
  $("width-value").textContent = `σ = ${(+$("blur-width").value).toFixed(1)} px`;
  $("length-value").textContent = `${$("blur-length").value} px`;
  $("angle-value").textContent = `${$("blur-angle").value}°`;
  for (const part of form.querySelectorAll("[data-task]")) part.hidden = part.dataset.task !== chosen("task");
  for (const part of form.querySelectorAll("[data-blur]")) part.hidden = part.dataset.blur !== chosen("blur");
  stage.redraw();
}

function placeDivider() {
  $("zoom-value").textContent = `${stage.scale < 0.1 ? (100 * stage.scale).toFixed(1) : Math.round(100 * stage.scale)} %`;
  const divider = $("divider");
  const { left, top, right, bottom } = stage.visible;
  Object.assign(divider.style, { left: `${stage.splitAt}px`, top: `${top}px`, height: `${bottom - top}px` });
  Object.assign($("tag-before").style, { left: `${left + 10}px`, top: `${top + 10}px` });
  Object.assign($("tag-after").style, { right: `${stage.size.width - right + 10}px`, top: `${top + 10}px` });
  const percent = Math.round(100 * stage.split);
  divider.setAttribute("aria-valuenow", percent);
  divider.setAttribute("aria-valuetext", `${percent} % before`);
  $("tag-before").style.opacity = percent < 8 ? 0 : 1;
  $("tag-after").style.opacity = percent > 92 ? 0 : 1;
}

function wish() {
  const task = chosen("task");
  return {
    task,
    version: shown.picture.version,
    steps: task === "inpaint" ? stage.marks.current : [],
    texture: +$("grain").value,
    sigma: $("measure").checked ? null : +$("sigma").value,
    blur: chosen("blur"),
    width: +$("blur-width").value,
    length: +$("blur-length").value,
    angle: +$("blur-angle").value,
    force: $("force").checked,
  };
}

async function open(file) {
  hush();
  $("name").textContent = `Opening ${file.name}…`;
  try {
    await take(await server.upload(file));
  } catch (error) {
    if (shown.picture) describePicture(shown.picture);
    else $("name").textContent = "";
    throw error;
  }
}

const openFile = file => file && attempt(() => open(file));

function listenToFiles() {
  $("open").addEventListener("click", () => $("file").click());
  $("file").addEventListener("change", () => { openFile($("file").files[0]); $("file").value = ""; });
  let depth = 0;
  const veil = on => { $("veil").hidden = !on; };
  addEventListener("dragenter", event => { event.preventDefault(); depth += 1; veil(true); });
  addEventListener("dragleave", () => { depth -= 1; veil(depth > 0); });
  addEventListener("dragover", event => event.preventDefault());
  addEventListener("drop", event => {
    event.preventDefault();
    depth = 0;
    veil(false);
    if (event.dataTransfer.items[0]?.webkitGetAsEntry?.()?.isDirectory) complain("That is a folder. Drop one photograph.");
    else openFile(event.dataTransfer.files[0]);
  });
  addEventListener("paste", event => openFile(event.clipboardData.files[0]));
}

function listenToButtons() {
  form.addEventListener("input", showValues);
  form.addEventListener("submit", doing(async () => begin(await server.mend(wish()))));
  for (const [id, kind] of [["find", ["dust", "scratches"]], ["find-text", ["text"]]])
    $(id).addEventListener("click", doing(async () => begin(await server.find($("sensitivity").value, kind))));
  $("estimate").addEventListener("click", doing(async () => begin(await server.estimate(chosen("blur")))));
  $("cancel").addEventListener("click", doing(async () => showProgress((await server.cancel()).job)));
  $("adopt").addEventListener("click", doing(async () => take(await server.adopt())));
  $("discard").addEventListener("click", doing(async () => take(await server.discard())));
  $("undo").addEventListener("click", () => stage.marks.undo());
  $("redo").addEventListener("click", () => stage.marks.redo());
  $("clear").addEventListener("click", () => stage.marks.clear());
  $("zoom-in").addEventListener("click", () => stage.zoom(1.5));
  $("zoom-out").addEventListener("click", () => stage.zoom(1 / 1.5));
  $("zoom-fit").addEventListener("click", () => stage.fit());
  $("zoom-one").addEventListener("click", () => stage.zoom(1 / stage.scale));
  $("message").lastElementChild.addEventListener("click", hush);
}

function listenToDivider() {
  const divider = $("divider");
  const follow = event => {
    const { left, right } = stage.visible;
    stage.setSplit((event.clientX - $("stage").getBoundingClientRect().left - left) / Math.max(1, right - left));
  };
  divider.addEventListener("pointerdown", event => { divider.setPointerCapture(event.pointerId); divider.focus({ preventScroll: true }); event.preventDefault(); });
  divider.addEventListener("pointermove", event => { if (divider.hasPointerCapture(event.pointerId)) follow(event); });
  divider.addEventListener("keydown", event => {
    const to = { ArrowLeft: stage.split - 0.02, ArrowRight: stage.split + 0.02, PageDown: stage.split - 0.1, PageUp: stage.split + 0.1, Home: 0, End: 1 };
    if (!(event.key in to)) return;
    event.preventDefault();
    stage.setSplit(to[event.key]);
  });
}

function listenToKeys() {
  const steps = { "[": -4, "]": 4 };
  const tools = { b: "paint", e: "erase", h: "move" };
  const zooms = { "+": () => stage.zoom(1.5), "=": () => stage.zoom(1.5), "-": () => stage.zoom(1 / 1.5), 0: () => stage.fit(), 1: () => stage.zoom(1 / stage.scale) };
  addEventListener("keydown", event => {
    if (!shown.picture) return;
    const command = event.ctrlKey || event.metaKey;
    if (command && event.key.toLowerCase() === "z" && brush().painting) {
      event.preventDefault();
      if (event.shiftKey) stage.marks.redo();
      else stage.marks.undo();
    } else if (command && event.key === "y" && brush().painting) {
      event.preventDefault();
      stage.marks.redo();
    } else if (command || event.altKey) {
      return;
    } else if (event.key in steps && brush().painting) {
      $("size").value = +$("size").value + steps[event.key];
      showValues();
    } else if (event.key in tools && brush().painting) {
      form.elements.tool.value = tools[event.key];
      showValues();
    } else if (event.key in zooms) {
      zooms[event.key]();
    } else if (event.key === " " && (event.target === document.body || event.target === $("canvas")) && !stage.pen) {
      event.preventDefault();
      stage.held = true;
    }
  });
  addEventListener("keyup", event => { if (event.key === " ") stage.held = false; });
}

// The token has done its work: the cookie holds it now, and the address need not show it.
history.replaceState(null, "", location.pathname);
listenToFiles();
listenToButtons();
listenToDivider();
listenToKeys();
showValues();
attempt(async () => take(await server.state()));
