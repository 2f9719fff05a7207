// Talks to the server that this page came from; an answer that is not fine becomes an Error with a sentence for people.

const GONE = "Pointillist does not answer any more. Start it again with “pointillist app”, and open the address that it prints.";

async function ask(path, options = {}) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Error(GONE);
  }
  if (response.ok) return response;
  const text = await response.text();
  let sentence = text;
  try {
    sentence = JSON.parse(text).error ?? text;
  } catch {
    // Refusals come as plain text, which is the sentence itself.
  }
  throw new Error(sentence || `The server answered ${response.status}.`);
}

const json = async (path, options) => (await ask(path, options)).json();

export const state = () => json("state");
export const upload = file => json(`picture?name=${encodeURIComponent(file.name)}`, { method: "PUT", body: file });

const act = (action, settings = {}) => json(action, { method: "POST", body: JSON.stringify(settings) });

export const find = (sensitivity, kind) => act("find", { sensitivity: +sensitivity, kind });
export const estimate = blur => act("estimate", { blur });
export const mend = wish => act("mend", wish);
export const cancel = () => act("cancel");
export const adopt = () => act("adopt");
export const discard = () => act("discard");

/** A part of a layer ("before", "after" or the number of a found mask) as a bitmap; `version` only tells views apart. */
export async function view(of, version, { x, y, w, h }, scale) {
  const query = new URLSearchParams({ of, x, y, w, h, scale, v: version });
  return createImageBitmap(await (await ask(`view?${query}`)).blob());
}
