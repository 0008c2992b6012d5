// The copy buttons of the cases, which need no other script.
document.querySelectorAll("[data-copy]").forEach((button) => {
  button.replaceWith(copyButton(button.dataset.copy));
});

// A link to a case opens it.
function openCase() {
  const found = /^#case-\d+$/.test(location.hash) && document.querySelector(location.hash);
  if (found) found.open = true;
}
addEventListener("hashchange", openCase);
openCase();
