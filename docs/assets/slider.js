// The before/after pictures. The range input holds the value and takes the keys; fingers and the mouse may press anywhere on the
// picture, since some browsers move a range only by its thumb.
for (const slider of document.querySelectorAll(".slider")) {
  const input = slider.querySelector("input")
  const show = () => slider.style.setProperty("--at", input.value + "%")
  const follow = event => {
    const box = slider.getBoundingClientRect()
    input.value = 100 * (event.clientX - box.left) / box.width
    show()
  }
  input.addEventListener("input", show)
  slider.addEventListener("pointerdown", event => {
    if (event.button) return
    event.preventDefault()
    input.focus({ preventScroll: true })
    slider.setPointerCapture(event.pointerId)
    follow(event)
  })
  slider.addEventListener("pointermove", event => { if (slider.hasPointerCapture(event.pointerId)) follow(event) })
  show()
}
