// The menu of versions in the header. `versions.js`, one folder above the pages of each version, lists all versions with their
// pages; it is a script, so that the menu also works from the disk, and each version sees those that came after it.
{
  const { base } = JSON.parse(document.getElementById("__config").textContent)
  const root = new URL(base + "/", location)
  const here = decodeURIComponent(root.pathname.split("/").at(-2))
  const page = decodeURIComponent(location.pathname.slice(root.pathname.length)) || "index.html"
  const menu = document.createElement("select")
  menu.className = "version-menu"
  menu.setAttribute("aria-label", "Version of the documentation")
  for (const { name } of window.documentationVersions) menu.add(new Option(name, name, false, name === here))
  menu.addEventListener("change", () => {
    const chosen = window.documentationVersions.find(version => version.name === menu.value)
    location.href = new URL(`../${chosen.name}/${chosen.pages.includes(page) ? page : "index.html"}`, root)
  })
  document.querySelector(".md-header__title").after(menu)
}
