// The before/after pictures: a range input, so that mouse, touch and keyboard all work.
for (const slider of document.querySelectorAll(".slider input")) {
  const show = () => slider.parentElement.style.setProperty("--at", slider.value + "%")
  slider.addEventListener("input", show)
  show()
}
