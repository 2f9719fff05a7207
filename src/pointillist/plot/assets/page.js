"use strict";
{
  const root = document.documentElement;
  const toggle = document.querySelector(".toggle");
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  const show = () => {
    const dark = chosen === null ? system.matches : chosen === "dark";
    if (chosen !== null) root.dataset.theme = chosen;
    toggle.textContent = dark ? "Light" : "Dark";
    toggle.setAttribute("aria-pressed", String(dark));
    toggle.setAttribute("aria-label", dark ? "Switch to light colours" : "Switch to dark colours");
  };
  toggle.addEventListener("click", () => {
    const dark = chosen === null ? system.matches : chosen === "dark";
    chosen = dark ? "light" : "dark";
    show();
  });
  system.addEventListener("change", show);
  show();

  for (const stage of document.querySelectorAll(".compare .stage")) {
    const slider = stage.querySelector("input");
    const move = () => {
      stage.style.setProperty("--at", slider.value + "%");
      slider.setAttribute("aria-valuetext", slider.value + " % original");
    };
    slider.addEventListener("input", move);
    move();
  }
}
